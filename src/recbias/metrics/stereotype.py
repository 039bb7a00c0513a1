"""How much the lists expose whoever gets them to items that carry a label, a stereotype above all.

A label is a column of the items: 0 or 1, or graded in between; one's own, or made by a detector
(an entry of ``labels:``). Every metric here is one value a query. A place whose item carries no
label (a missing cell, or an item outside the catalogue) is neither stereotyped nor free of it: it
is left out, and counted in a warning. A list of which no item carries the label, and an empty
one, is undefined.
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
_VALUES = "0 to 1; undefined where no item of the list carries the label"
_SOURCE = "Al Nahadi, Exploring Children's Exposure to Stereotypes, TU Delft 2023, chapter 3"


@dataclass(frozen=True, kw_only=True)
class HitBad:
    """The share of lists with at least one stereotyped item.

        HIT_BAD@k = 1 if x_r = 1 for any r ≤ k, else 0

    x_r is 1 where the item at rank r is stereotyped: where its label is above 0, or at least
    ``threshold``. Undefined for a list of which no item carries the label.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The least grade that counts as stereotyped; by default all above 0.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label.

    Range:
        0 to 1; undefined where no item of the list carries the label.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, chapter 3.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    label: str
    threshold: Limit = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse a label that the items do not have."""
        _grades(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        grades = _graded_places(evidence, self.label, self.k)
        values = np.any(_bad(grades, self.threshold), axis=1)
        return _measured(evidence, grades, values, share=True)


@dataclass(frozen=True, kw_only=True)
class MrrBad:
    """How early the first stereotyped item of each list comes.

        MRR_BAD@k = 1 / (rank of the first r ≤ k with x_r = 1), 0 if there is none

    x_r is 1 where the item at rank r is stereotyped: where its label is above 0, or at least
    ``threshold``. Ranks count every item of the list, with a label or without. Undefined for a
    list of which no item carries the label.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The least grade that counts as stereotyped; by default all above 0.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label.

    Range:
        0 to 1; undefined where no item of the list carries the label.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, chapter 3.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    label: str
    threshold: Limit = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse a label that the items do not have."""
        _grades(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        grades = _graded_places(evidence, self.label, self.k)
        bad = _bad(grades, self.threshold)
        ranks = np.argmax(bad, axis=1) + 1 if bad.shape[1] else np.ones(len(bad))
        return _measured(evidence, grades, bad.any(axis=1) / ranks)


@dataclass(frozen=True, kw_only=True)
class RecST:
    """How much of each list is stereotyped, early places counting more.

        REC-ST@k = Σ_{r ≤ k} x_r (k - r + 1)  /  ( k (k + 1) / 2 )

    x_r is the label of the item at rank r, graded where it is, or whether it is at least
    ``threshold``. The denominator is that of k places, so a list that is shorter has less to
    expose anyone to, and stays below 1; the weights of places whose item carries no label are
    taken out of it. Lists in random order have the share of stereotyped items on average.
    Undefined for a list of which no item carries the label.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The least grade that counts as stereotyped, and then counts in full; by default
            grades count as they are.
        k: How much of each list is measured; by default all of it.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label.

    Range:
        0 to 1; undefined where no item of the list carries the label.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, chapter 3.
    """

    needs: ClassVar[frozenset[str]] = _NEEDS
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    label: str
    threshold: Limit = None
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse a label that the items do not have."""
        _grades(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        grades = _graded_places(evidence, self.label, self.k)
        worth = np.nan_to_num(grades)
        if self.threshold is not None:
            worth = _bad(grades, self.threshold).astype(np.float64)
        k = self.k or max(evidence.ranked.k, 1)
        weights = k - np.arange(grades.shape[1], dtype=np.float64)
        unlabelled = np.isnan(grades) & evidence.ranked.filled[:, : self.k]
        most = k * (k + 1) / 2 - unlabelled @ weights
        return _measured(evidence, grades, worth @ weights / np.maximum(most, 1.0))


def _grades(evidence: Evidence, label: str) -> FloatArray:
    """Return the label of each item, ``float64[n_items]``; NaN where it carries none."""
    evidence.need("items")
    try:
        grades = evidence.items.numbers(label)  # type: ignore[union-attr]  # need() raises on None
    except UnknownColumn as error:
        remedy = error.remedy or "name a column of numbers, or make one by a detector: labels:"
        raise UnknownColumn(error.message, where="label", remedy=remedy) from error
    wrong = np.flatnonzero((grades < 0) | (grades > 1))
    if wrong.size:
        item = evidence.item_ids.ids[wrong[0]]
        found = f"{label!r} of item {item!r} is {grades[wrong[0]]:g}, not within 0 and 1"
        remedy = "make labels of it: {name: mine, detector: column, from: ..., threshold: ...}"
        raise OutOfRange(found, where="label", remedy=remedy)
    if np.isnan(grades).all():
        remedy = "name a column that holds 0, 1 or grades in between"
        raise NothingLeft(f"no item carries the label {label!r}", where="label", remedy=remedy)
    return grades


def _graded_places(evidence: Evidence, label: str, k: int | None) -> FloatArray:
    """Return the label at each place, ``float64[q, m]``; NaN where there is none or no item."""
    grades = _grades(evidence, label)
    items = evidence.ranked.items[:, :k]
    known = evidence.in_catalogue[:, :k]
    found = np.append(grades, np.nan)[np.where(known, items, -1)]
    strangers = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(~np.isnan(found)))
    if strangers:
        what = f"hold an item without the label {label!r}, and are left out"
        warn(f"{evidence.metric}: {strangers:,} places of the lists {what}")
    return found


def _bad(grades: FloatArray, threshold: float | None) -> BoolArray:
    """Return which places hold a stereotyped item, ``bool[q, m]``."""
    return np.asarray(grades > 0 if threshold is None else grades >= threshold)


def _measured(
    evidence: Evidence, grades: FloatArray, values: AnyArray, *, share: bool = False
) -> Sequence[Measurement]:
    """Return the one measurement; NaN for a list of which no place carries a label."""
    defined = ~np.isnan(grades).all(axis=1)
    queries = evidence.queries
    known = np.where(defined, values, np.nan)
    return [Measurement.from_units(UnitScores(queries.unit, queries.ids.ids, known, share))]
