"""How many items of the catalogue carry a label, overall and by the values of an attribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import BoolArray, FloatArray
from recbias.core.errors import UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.stereotype import read_grades


@dataclass(frozen=True, kw_only=True)
class LabelledItems:
    """The number or share of the items that are labelled, such as those with a stereotype.

        count = Σ_i x_i,    share = Σ_i x_i / n

    x_i is 1 if the label of item i is above 0, or at least ``threshold``; the sums are over the n
    items of the catalogue that carry the label, after the filters. Items with a missing label are
    excluded and counted as undefined. With ``attribute`` there is also a value for each of its
    values, such as each genre, over the items that have it; an item of several genres counts in
    each. The 95% interval of a share is Wilson's; a count has none. A share is undefined where no
    item carries the label.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The lowest label that counts; by default all above 0.
        attribute: The column of the items whose values are counted apart: ``genres``.
        form: ``count`` or ``share``.

    Raises:
        UnknownColumn: The items have no such column, or the label is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label.

    Range:
        0 to the number of items, or to 1.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, Table 5.3.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    label: str
    threshold: Annotated[float, Gt(0.0), Le(1.0)] | None = None
    attribute: str | None = None
    form: Literal["count", "share"] = "count"

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the label or the attribute."""
        read_grades(evidence, self.label)
        list(self._iterate_targets(evidence))

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of the catalogue, then that of each value of the attribute."""
        grades = read_grades(evidence, self.label)
        is_labelled = grades > 0 if self.threshold is None else grades >= self.threshold
        labels = np.where(np.isnan(grades), np.nan, is_labelled)
        everywhere = np.ones(labels.size, dtype=bool)
        return [
            self._summarize(labels[rows], target)
            for target, rows in (("", everywhere), *self._iterate_targets(evidence))
        ]

    def _summarize(self, labels: FloatArray, target: str) -> Measurement:
        share = replace(Measurement.from_values(labels, share=True), target=target)
        if self.form == "share":
            return share
        return Measurement(float(np.nansum(labels)), share.n, share.undefined, target=target)

    def _iterate_targets(self, evidence: Evidence) -> Iterator[tuple[str, BoolArray]]:
        """Yield each value of the attribute, and which items have it."""
        if self.attribute is None or evidence.items is None:
            return
        try:
            membership = evidence.items.membership(self.attribute)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="attribute", remedy=error.remedy) from error
        columns = membership.matrix.tocsc()
        for code, value in enumerate(membership.values):
            has_value = np.zeros(len(evidence.items.ids), dtype=bool)
            has_value[columns.indices[columns.indptr[code] : columns.indptr[code + 1]]] = True
            yield f"{self.attribute}={value}", has_value
