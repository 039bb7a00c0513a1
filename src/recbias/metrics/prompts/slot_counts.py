"""The items in the lists of each unit, counted by attribute value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.query_labels import locate_errors

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None
"""How many ranks of each list are evaluated; None evaluates all."""


@dataclass(frozen=True, eq=False)
class SlotCounts:
    """How often each value of an item attribute occurs in the lists of each unit.

    Args:
        values: The attribute values, sorted.
        counts: The number of positions with an item of the value, ``float64[u, m]``; repeats
            count, and an item of several values counts for each.
        positions: The number of positions with an item of any value, ``float64[u]``.
    """

    values: tuple[str, ...]
    counts: FloatArray
    positions: FloatArray


def require_items(evidence: Evidence) -> Attributes:
    """Return the items table; raise MissingEvidence if there is none."""
    evidence.need("items")
    return evidence.items  # type: ignore[return-value]  # need() raises on None


def check_attribute(evidence: Evidence, attribute: str) -> None:
    """Check that an item attribute exists and that an item has a value of it.

    Raises:
        UnknownColumn: The items have no such column; ``where`` is ``attribute``.
        NothingLeft: Every cell is missing.
    """
    items = require_items(evidence)
    with locate_errors("attribute"):
        if items.column(attribute).isna().all():
            message = f"no item has a value of {attribute!r}"
            raise NothingLeft(message, remedy="choose an attribute that items have")


def count_attribute_values(
    evidence: Evidence, design: Design, attribute: str, *, k: int | None
) -> SlotCounts:
    """Return the number of list positions of each unit by the attribute value of their item."""
    membership = require_items(evidence).membership(attribute)
    matrix = membership.matrix.astype(np.float64)
    known = np.asarray(matrix.sum(axis=1)).ravel() > 0
    items = count_items(evidence, design.queries, design.group.size, k=k)
    warn_missing_attribute(evidence, items, known, attribute)
    counts = (items @ matrix).toarray()
    return SlotCounts(membership.values, counts, items @ known.astype(np.float64))


def count_items(evidence: Evidence, units: AnyArray, n_units: int, *, k: int | None) -> Matrix:
    """Return how often each item occurs in the lists of each unit, CSR ``(u, n_items)``.

    Items outside the catalogue are excluded and counted in a warning.
    """
    from scipy.sparse import coo_array

    items = evidence.ranked.items[:, :k]
    filled = (units >= 0)[:, None] & (items >= 0)
    known = filled & evidence.in_catalogue[:, :k]
    n_unknown = int(np.count_nonzero(filled)) - int(np.count_nonzero(known))
    if n_unknown:
        message = "positions of the lists hold an item outside the catalogue and are excluded"
        warn(f"{evidence.metric}: {n_unknown:,} {message}")
    rows = np.broadcast_to(units[:, None], items.shape)[known]
    shape = (n_units, len(evidence.item_ids))
    return coo_array((np.ones(rows.size), (rows, items[known])), shape=shape).tocsr()


def average_levels(
    evidence: Evidence,
    units: tuple[AnyArray, int],
    levels: FloatArray,
    attribute: str,
    k: int | None,
) -> FloatArray:
    """Return the mean level over the list positions of each unit, ``float64[u]``, or NaN.

    Args:
        evidence: The lists.
        units: The unit of each query, and the number of units.
        levels: The level of each item.
        attribute: The attribute, for the warning of positions without a level.
        k: How many ranks of each list count.
    """
    counts = count_items(evidence, *units, k=k)
    known = ~np.isnan(levels)
    warn_missing_attribute(evidence, counts, known, attribute)
    positions = counts @ known.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((counts @ np.nan_to_num(levels)) / positions)


def warn_missing_attribute(
    evidence: Evidence, counts: Any, known: BoolArray, attribute: str
) -> None:
    """Warn of the positions whose item has no value of the attribute."""
    n_missing = int((counts @ (~known).astype(np.float64)).sum())
    if n_missing:
        message = f"positions of the lists hold an item without {attribute} and are excluded"
        warn(f"{evidence.metric}: {n_missing:,} {message}")


def read_item_levels(evidence: Evidence, attribute: str) -> FloatArray:
    """Return an attribute as numbers, ``float64[n_items]``; NaN if it is missing.

    A text of one repeated symbol (``$`` to ``$$$$``) becomes the number of symbols.

    Raises:
        UnknownColumn: There is no such column, or it holds neither numbers nor repeated symbols;
            ``where`` is ``attribute``.
        NothingLeft: Every cell is missing.
    """
    check_attribute(evidence, attribute)
    items = require_items(evidence)
    cells = items.column(attribute)
    texts = cells[cells.notna()].astype(str)
    if texts.str.fullmatch(r"([^\w\s.|])\1*").all() and texts.str[0].nunique() == 1:
        return np.where(cells.notna(), cells.astype(str).str.len(), np.nan)
    with locate_errors("attribute"):
        return items.numbers(attribute)
