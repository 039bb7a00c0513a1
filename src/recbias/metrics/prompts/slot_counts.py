"""What stands in the places of the lists, added up over the queries of a unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.template_design import blaming


@dataclass(frozen=True, eq=False)
class SlotCounts:
    """How often each value of an item attribute stands in the lists of each unit.

    Args:
        values: The attribute values, sorted.
        counts: Places that hold an item of the value, ``float64[u, m]``; repeats count, and an
            item of several values counts for each.
        places: Places that hold an item with any value, ``float64[u]``.
    """

    values: tuple[str, ...]
    counts: FloatArray
    places: FloatArray


def known_items(evidence: Evidence) -> Attributes:
    """Return the items table; an error where there is none."""
    evidence.need("items")
    return evidence.items  # type: ignore[return-value]  # need() raises on None


def check_attribute(evidence: Evidence, attribute: str) -> None:
    """Refuse an item attribute that is not there, or that no item has a value of.

    Raises:
        UnknownColumn: The items have no such column; ``where`` is ``attribute``.
        NothingLeft: Every cell is missing.
    """
    items = known_items(evidence)
    with blaming("attribute"):
        if items.column(attribute).isna().all():
            found = f"no item has a value of {attribute!r}"
            raise NothingLeft(found, remedy="name an attribute that items have")


def count_slots(
    evidence: Evidence, design: Design, attribute: str, *, k: int | None
) -> SlotCounts:
    """Return the places of each unit by the attribute value of their item.

    Args:
        evidence: The lists and the items.
        design: The units.
        attribute: The item column; a cell ``a|b`` holds both values.
        k: How much of each list counts.
    """
    check_attribute(evidence, attribute)
    members = known_items(evidence).membership(attribute)
    counted = members.matrix.astype(np.float64)
    known = np.asarray(counted.sum(axis=1)).ravel() > 0
    held = items_of_units(evidence, design.queries, design.group.size, k=k)
    say_without(evidence, held, known, attribute)
    return SlotCounts(members.values, (held @ counted).toarray(), held @ known.astype(np.float64))


def items_of_units(evidence: Evidence, units: AnyArray, n_units: int, *, k: int | None) -> Matrix:
    """Return how often each item stands in the lists of each unit, CSR ``(u, n_items)``.

    Items outside the catalogue are left out and counted in a warning.
    """
    from scipy.sparse import coo_array

    items = evidence.ranked.items[:, :k]
    asked = (units >= 0)[:, None] & (items >= 0)
    inside = asked & evidence.in_catalogue[:, :k]
    strangers = int(np.count_nonzero(asked)) - int(np.count_nonzero(inside))
    if strangers:
        what = "hold an item outside the catalogue, and are left out"
        warn(f"{evidence.metric}: {strangers:,} places of the lists {what}")
    rows = np.broadcast_to(units[:, None], items.shape)[inside]
    ones = np.ones(rows.size)
    shape = (n_units, len(evidence.item_ids))
    return coo_array((ones, (rows, items[inside])), shape=shape).tocsr()


def say_without(evidence: Evidence, held: Any, known: BoolArray, attribute: str) -> None:
    """Warn of the places whose item has no value of the attribute."""
    without = int((held @ (~known).astype(np.float64)).sum())
    if without:
        what = f"hold an item without {attribute}, and are left out"
        warn(f"{evidence.metric}: {without:,} places of the lists {what}")


def item_levels(evidence: Evidence, attribute: str) -> FloatArray:
    """Return an attribute as numbers, ``float64[n_items]``; NaN where it is missing.

    Text that repeats one sign (``$`` to ``$$$$``) is the number of signs.

    Raises:
        UnknownColumn: There is no such column, or it is neither numbers nor repeated signs;
            ``where`` is ``attribute``.
        NothingLeft: Every cell is missing.
    """
    check_attribute(evidence, attribute)
    items = known_items(evidence)
    cells = items.column(attribute)
    texts = cells[cells.notna()].astype(str)
    if texts.str.fullmatch(r"([^\w\s.|])\1*").all() and texts.str[0].nunique() == 1:
        return np.where(cells.notna(), cells.astype(str).str.len(), np.nan)
    with blaming("attribute"):
        return items.numbers(attribute)
