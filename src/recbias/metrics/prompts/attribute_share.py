"""The share of the recommendations, or of the items, that have each value of an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.prompts.slot_counts import (
    Cutoff,
    check_attribute,
    count_items,
    require_items,
    warn_missing_attribute,
)


@dataclass(frozen=True, kw_only=True)
class AttributeShare:
    """The share of the recommendations, or of the items, that have each value of an attribute.

        share(m) = (1 / |Q|) Σ_{q in Q} |I_{q,m}| / |I_q|

    I_q are the items in the list of query q that have a value of the attribute, and I_{q,m} those
    with the value m: the share of recommended restaurants at each price. With ``of: items`` there
    is one I, the items of the dataset, whatever a model recommends. An item of several values
    counts for each of them. Items outside the catalogue or without a value are excluded and
    counted in a warning. Undefined for a query whose list has no item with a value.

    Args:
        attribute: A column of the items.
        of: ``lists`` or ``items``.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        UnknownColumn: The items have no such column.
        NothingLeft: Every item lacks the attribute.

    Range:
        0 to 1; undefined without an item that has a value.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 4.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    attribute: str
    of: Literal["lists", "items"] = "lists"
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"items", "lists"} if self.of == "lists" else {"items"})

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on the attribute only."""
        check_attribute(evidence, self.attribute)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share of each value, in the order of the values."""
        check_attribute(evidence, self.attribute)
        membership = require_items(evidence).membership(self.attribute)
        matrix = membership.matrix.astype(np.float64)
        has_value: BoolArray = np.asarray(matrix.sum(axis=1)).ravel() > 0
        if self.of == "items":
            values = np.where(has_value[:, None], matrix.toarray(), np.nan)
            ids = evidence.item_ids.ids
            estimates = [
                Measurement.from_units(UnitScores("item", ids, column)) for column in values.T
            ]
        else:
            shares = self._compute_shares(evidence, matrix, has_value)
            estimates = [evidence.measure_queries(column) for column in shares.T]
        return [
            replace(estimate, target=f"{self.attribute}={value}")
            for value, estimate in zip(membership.values, estimates, strict=True)
        ]

    def _compute_shares(
        self, evidence: Evidence, matrix: Matrix, has_value: BoolArray
    ) -> FloatArray:
        """Return the share of each value in each list, ``float64 (q, m)``."""
        n_queries = len(evidence.queries)
        items = count_items(evidence, np.arange(n_queries), n_queries, k=self.k)
        warn_missing_attribute(evidence, items, has_value, self.attribute)
        positions = items @ has_value.astype(np.float64)
        with np.errstate(invalid="ignore"):
            return np.asarray((items @ matrix).toarray() / positions[:, None])
