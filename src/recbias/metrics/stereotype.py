"""How much the lists expose users to items that carry a label, such as a stereotype.

A label is a column of the items, 0 or 1 or graded in between: a column of the dataset or one made
by a detector (an entry of ``labels:``). Each metric has one value for each query. Positions whose
item does not carry the label (a missing cell, or an item outside the catalogue) are excluded and
counted in a warning. A list without an item that carries the label, and an empty list, is
undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn


@dataclass(frozen=True, kw_only=True)
class _LabelMetric(InheritsSections):
    """A metric of the label of the items in each list.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The lowest label that counts as stereotyped; by default all above 0.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label.

    Range:
        0 to 1; undefined if no item of the list carries the label.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, chapter 3.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    unit: ClassVar[str] = "query"
    is_share: ClassVar[bool] = False
    """Whether the values are 0 or 1."""

    label: str
    threshold: Annotated[float, Gt(0.0), Le(1.0)] | None = None
    k: Annotated[int, Gt(0)] | None = None

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the label, or it is not within 0 and 1."""
        read_grades(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        items, known = evidence.ranked.items[:, : self.k], evidence.in_catalogue[:, : self.k]
        labels = np.append(read_grades(evidence, self.label), np.nan)
        grades = labels[np.where(known, items, -1)]
        has_label = ~np.isnan(grades)
        n_unlabelled = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(has_label))
        if n_unlabelled:
            message = f"hold an item without the label {self.label!r} and are excluded"
            warn(f"{evidence.metric}: {n_unlabelled:,} positions of the lists {message}")
        values = np.where(has_label.any(axis=1), self._score(evidence, grades), np.nan)
        queries = evidence.queries
        scores = UnitScores(queries.unit, queries.ids.ids, values, self.is_share)
        return [Measurement.from_units(scores)]

    def _score(self, evidence: Evidence, grades: FloatArray) -> AnyArray:
        """Return the value of each list from the label at each position, NaN without one."""
        raise NotImplementedError

    def _mark_stereotyped(self, grades: FloatArray) -> BoolArray:
        """Return which positions hold a stereotyped item, ``bool[q, m]``."""
        return np.asarray(grades > 0 if self.threshold is None else grades >= self.threshold)


class HitBad(_LabelMetric):
    """The share of lists with at least one stereotyped item.

        HIT_BAD@k = 1 if x_r = 1 for any r ≤ k, else 0

    x_r is 1 if the item at rank r is stereotyped: its label is above 0, or at least ``threshold``.
    Undefined for a list without an item that carries the label.
    """

    direction: ClassVar[Direction] = "lower"
    is_share = True

    def _score(self, evidence: Evidence, grades: FloatArray) -> AnyArray:
        return np.asarray(self._mark_stereotyped(grades).any(axis=1))


class MrrBad(_LabelMetric):
    """Reciprocal rank of the first stereotyped item of each list.

        MRR_BAD@k = 1 / (rank of the first r ≤ k with x_r = 1), 0 if there is none

    x_r is 1 if the item at rank r is stereotyped: its label is above 0, or at least ``threshold``.
    Ranks count all items of the list, whether they carry the label or not. Undefined for a list
    without an item that carries the label.
    """

    direction: ClassVar[Direction] = "lower"

    def _score(self, evidence: Evidence, grades: FloatArray) -> AnyArray:
        stereotyped = self._mark_stereotyped(grades)
        ranks = np.argmax(stereotyped, axis=1) + 1 if grades.shape[1] else np.ones(len(grades))
        return np.asarray(stereotyped.any(axis=1) / ranks)


class RecST(_LabelMetric):
    """The share of stereotyped items in each list, with more weight at the top.

        REC-ST@k = Σ_{r ≤ k} x_r (k - r + 1)  /  ( k (k + 1) / 2 )

    x_r is the label of the item at rank r, possibly graded; with ``threshold``, whether it is at
    least that. The denominator is that of k ranks, so that a shorter list stays below 1, without
    the weights of ranks whose item does not carry the label. The expectation for lists in random
    order is the share of stereotyped items. Undefined for a list without an item that carries the
    label.

    Args:
        threshold: The lowest label that counts as stereotyped, with weight 1; by default each
            label is a weight.
    """

    direction: ClassVar[Direction] = "lower"

    def _score(self, evidence: Evidence, grades: FloatArray) -> AnyArray:
        gains = np.nan_to_num(grades)
        if self.threshold is not None:
            gains = self._mark_stereotyped(grades).astype(np.float64)
        k = self.k or max(evidence.ranked.k, 1)
        weights = k - np.arange(grades.shape[1], dtype=np.float64)
        unlabelled = np.isnan(grades) & evidence.ranked.filled[:, : self.k]
        maximum = k * (k + 1) / 2 - unlabelled @ weights
        return np.asarray(gains @ weights / np.maximum(maximum, 1.0))


def read_grades(evidence: Evidence, label: str) -> FloatArray:
    """Return the label of each item, ``float64[n_items]``; NaN if it does not carry the label."""
    evidence.need("items")
    try:
        grades = evidence.items.numbers(label)  # type: ignore[union-attr]  # need() raises on None
    except UnknownColumn as error:
        remedy = error.remedy or "choose a numeric column, or make one by a detector: labels:"
        raise UnknownColumn(error.message, where="label", remedy=remedy) from error
    invalid = np.flatnonzero((grades < 0) | (grades > 1))
    if invalid.size:
        item = evidence.item_ids.ids[invalid[0]]
        message = f"{label!r} of item {item!r} is {grades[invalid[0]]:g}, not within 0 and 1"
        remedy = "make labels of it: {name: mine, detector: column, from: ..., threshold: ...}"
        raise OutOfRange(message, where="label", remedy=remedy)
    if np.isnan(grades).all():
        remedy = "choose a column that holds 0, 1 or numbers in between"
        raise NothingLeft(f"no item carries the label {label!r}", where="label", remedy=remedy)
    return grades
