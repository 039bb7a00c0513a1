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
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt, Le

from recbias.core.arrays import AnyArray, BoolArray, FloatArray
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn
from recbias.core.measurements.scores import Direction, Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None
Limit: TypeAlias = Annotated[float, Gt(0.0), Le(1.0)] | None

_NEEDS = frozenset({"lists", "items"})


@dataclass(frozen=True, kw_only=True)
class _LabelMetric:
    """A metric of the label of the items in each list."""

    label: str
    threshold: Limit = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the label, or it is not within 0 and 1."""
        _read_grades(evidence, self.label)


@dataclass(frozen=True, kw_only=True)
class HitBad(_LabelMetric):
    """The share of lists with at least one stereotyped item.

        HIT_BAD@k = 1 if x_r = 1 for any r ≤ k, else 0

    x_r is 1 if the item at rank r is stereotyped: its label is above 0, or at least ``threshold``.
    Undefined for a list without an item that carries the label.

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

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        grades = _grade_lists(evidence, self.label, self.k)
        values = np.any(_mark_stereotyped(grades, self.threshold), axis=1)
        return _summarize(evidence, grades, values, share=True)


@dataclass(frozen=True, kw_only=True)
class MrrBad(_LabelMetric):
    """Reciprocal rank of the first stereotyped item of each list.

        MRR_BAD@k = 1 / (rank of the first r ≤ k with x_r = 1), 0 if there is none

    x_r is 1 if the item at rank r is stereotyped: its label is above 0, or at least ``threshold``.
    Ranks count all items of the list, whether they carry the label or not. Undefined for a list
    without an item that carries the label.

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

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        grades = _grade_lists(evidence, self.label, self.k)
        stereotyped = _mark_stereotyped(grades, self.threshold)
        ranks = np.argmax(stereotyped, axis=1) + 1 if grades.shape[1] else np.ones(len(grades))
        return _summarize(evidence, grades, stereotyped.any(axis=1) / ranks)


@dataclass(frozen=True, kw_only=True)
class RecST(_LabelMetric):
    """The share of stereotyped items in each list, with more weight at the top.

        REC-ST@k = Σ_{r ≤ k} x_r (k - r + 1)  /  ( k (k + 1) / 2 )

    x_r is the label of the item at rank r, possibly graded; with ``threshold``, whether it is at
    least that. The denominator is that of k ranks, so that a shorter list stays below 1, without
    the weights of ranks whose item does not carry the label. The expectation for lists in random
    order is the share of stereotyped items. Undefined for a list without an item that carries the
    label.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The lowest label that counts as stereotyped, with weight 1; by default each
            label is a weight.
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

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        grades = _grade_lists(evidence, self.label, self.k)
        gains = np.nan_to_num(grades)
        if self.threshold is not None:
            gains = _mark_stereotyped(grades, self.threshold).astype(np.float64)
        k = self.k or max(evidence.ranked.k, 1)
        weights = k - np.arange(grades.shape[1], dtype=np.float64)
        unlabelled = np.isnan(grades) & evidence.ranked.filled[:, : self.k]
        maximum = k * (k + 1) / 2 - unlabelled @ weights
        return _summarize(evidence, grades, gains @ weights / np.maximum(maximum, 1.0))


def _read_grades(evidence: Evidence, label: str) -> FloatArray:
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


def _grade_lists(evidence: Evidence, label: str, k: int | None) -> FloatArray:
    """Return the label at each position, ``float64[q, m]``; NaN without a label or an item."""
    items = evidence.ranked.items[:, :k]
    known = evidence.in_catalogue[:, :k]
    grades = np.append(_read_grades(evidence, label), np.nan)[np.where(known, items, -1)]
    n_unlabelled = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(~np.isnan(grades)))
    if n_unlabelled:
        message = f"hold an item without the label {label!r} and are excluded"
        warn(f"{evidence.metric}: {n_unlabelled:,} positions of the lists {message}")
    return grades


def _mark_stereotyped(grades: FloatArray, threshold: float | None) -> BoolArray:
    """Return which positions hold a stereotyped item, ``bool[q, m]``."""
    return np.asarray(grades > 0 if threshold is None else grades >= threshold)


def _summarize(
    evidence: Evidence, grades: FloatArray, values: AnyArray, *, share: bool = False
) -> Sequence[Measurement]:
    """Return the mean over queries; lists without a label are undefined."""
    defined = ~np.isnan(grades).all(axis=1)
    values = np.where(defined, values, np.nan)
    queries = evidence.queries
    return [Measurement.from_units(UnitScores(queries.unit, queries.ids.ids, values, share))]
