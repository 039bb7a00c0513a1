"""Labels of items: exposure to labelled items, agreement of labels, and the catalogue itself.

A label is a column of the items, 0 or 1 or graded in between: a column of the dataset or one made
by a detector (an entry of ``labels:``). Positions whose item does not carry the label (a missing
cell, or an item outside the catalogue) are excluded and counted in a warning. How much a
re-ranking depends on the order of the candidates, and how many ranks hold no item, stand here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Gt, Le, MinLen

from recbias.core.context import record_fact, warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, Vocabulary, divide
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn, at_setting
from recbias.core.evidence import Evidence
from recbias.core.measures import Bounds, Direction, Measurement, UnitScores
from recbias.metrics.base import Cutoff, PerQuery, locate_items
from recbias.statistics.agreement import Level, cohen_kappa, krippendorff_alpha, resample_alpha
from recbias.statistics.intervals import bootstrap_interval
from recbias.statistics.prediction_powered import (
    LEAST,
    Correction,
    HumanLabels,
    correct_lists,
    estimate_mean,
)


@dataclass(frozen=True, kw_only=True)
class CatalogueCounts:
    """The numbers of items and interactions, and of the values of an attribute.

        n(i) = interactions of item i in all parts of the split

    - ``items``: the items with an interaction; ``interactions``: Σ_i n(i); ``most interactions of
      an item``: max_i n(i).
    - ``values of categories``: the distinct values of the attribute among these items; ``most
      values of an item``: the largest number that one item has.

    They describe the data after the filters, and belong to no model.

    Args:
        attribute: A column of the items, whose cell ``x|y`` has two values; none by default.

    Raises:
        UnknownColumn: The items have no such column.

    Range:
        0 or more.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 2.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    direction: ClassVar[Direction] = "none"
    unit: ClassVar[str] = ""

    attribute: str | None = None

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return frozenset({"train"} if self.attribute is None else {"train", "items"})

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the attribute."""
        if self.attribute is None:
            return
        evidence.need("items")
        with at_setting("attribute"):
            evidence.items.column(self.attribute)  # type: ignore[union-attr]  # need() raises

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the counts."""
        self.check(evidence)
        evidence.need("train")
        counts = evidence.item_counts
        if counts is None:
            counts = evidence.popularity
        has_interaction = counts > 0
        numbers = {
            "items": np.count_nonzero(has_interaction),
            "interactions": counts.sum(),
            "most interactions of an item": counts.max(initial=0.0),
        }
        if self.attribute is not None:
            matrix = evidence.items.membership(self.attribute).matrix  # type: ignore[union-attr]
            used = matrix[np.flatnonzero(has_interaction)]
            numbers |= {
                f"values of {self.attribute}": np.count_nonzero(np.diff(used.tocsc().indptr)),
                "most values of an item": np.diff(used.tocsr().indptr).max(initial=0),
            }
        n = int(numbers["items"])
        return [
            Measurement(float(number), n=n, undefined=0, target=name)
            for name, number in numbers.items()
        ]


_MAX_CATEGORIES = 20
"""A label with more distinct numbers is not categorical."""

_Z = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class _AgreementMetric(InheritsSections):
    """A metric of the labels of the items.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"items"})
    unit: ClassVar[str] = ""

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack a label."""
        self._read_labels(evidence)

    def _read_labels(self, evidence: Evidence) -> FloatArray:
        """Return the labels, ``float64[labels, items]``."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class _PairMetric(_AgreementMetric):
    """A metric of two labels of the items.

    Args:
        a: A column of the items: ``ngim.gender``. Each distinct number is a category.
        b: The other column, such as the labels of people.

    Raises:
        OutOfRange: A label has more than 20 distinct numbers and is not categorical.
    """

    a: str
    b: str

    def _read_labels(self, evidence: Evidence) -> FloatArray:
        pair = [_read_label(evidence, self.a, "a"), _read_label(evidence, self.b, "b")]
        for setting, labels in zip("ab", pair, strict=True):
            categories = np.unique(labels[~np.isnan(labels)])
            if categories.size > _MAX_CATEGORIES:
                message = f"{categories.size:,} distinct numbers are not categories"
                remedy = "label by a threshold: {detector: column, from: ..., threshold: 0.5}"
                raise OutOfRange(message, where=setting, remedy=remedy)
        return np.stack(pair)


class LabelAccuracy(_PairMetric):
    """The share of items whose two labels are equal.

        accuracy = (1/n) Σ_i [ a_i = b_i ]

    The sum runs over the n items that have both labels; the others are counted as undefined. The
    95% interval is Wilson's. Where one label is rare the value is high for labels that agree by
    chance only: report ``cohen_kappa`` beside it. Undefined if no item has both labels.

    Range:
        0 to 1; undefined if no item has both labels.

    Source:
        Wilson, "Probable inference, the law of succession, and statistical inference", Journal of
        the American Statistical Association 1927 (the interval).
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the share, with its interval."""
        a, b = self._read_labels(evidence)
        equal = np.where(np.isnan(a + b), np.nan, (a == b).astype(np.float64))
        return [Measurement.from_values(equal, share=True)]


class CohenKappa(_PairMetric):
    """Agreement between two labels of the items beyond chance.

        κ = (p_o - p_e) / (1 - p_e)

    p_o is the share of the items whose labels are equal, p_e the share expected by chance given
    the frequencies of both labels. 1 is perfect agreement, 0 is agreement by chance, negative is
    less. Items without one of the two labels are excluded and counted as undefined. The 95%
    interval is κ ± 1.96 large-sample standard errors. Undefined if no item has both labels, or all
    labels are equal.

    Range:
        -1 to 1; undefined if all labels are equal.

    Source:
        Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
        Measurement 1960; the standard error: Fleiss, Cohen and Everitt, Psychological Bulletin
        1969.
    """

    direction: ClassVar[Direction] = "higher"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its interval."""
        a, b = self._read_labels(evidence)
        kappa, error = cohen_kappa(a, b)
        n_both = int(np.count_nonzero(~np.isnan(a + b)))
        return [_measure(kappa, n_both, a.size, (kappa - _Z * error, kappa + _Z * error))]


@dataclass(frozen=True, kw_only=True)
class KrippendorffAlpha(_AgreementMetric):
    """Agreement between any number of labels of the items beyond chance; labels may be missing.

        α = 1 - D_o / D_e

    D_o is the mean disagreement of two labels of one item, D_e that of any two labels. The
    disagreement of two labels is 1 if they differ (``nominal``), or the square of their difference
    (``interval``). 1 is perfect agreement, 0 is agreement by chance, negative is less. Items with
    fewer than two labels are excluded and counted as undefined. The 95% interval is α ± 1.96
    standard deviations over bootstrap samples of the items. Undefined if no item has two labels,
    or all labels are equal.

    Args:
        labels: At least two columns of the items: ``[ngim.gender, biasmeter.gender]``.
        level: ``nominal`` for 0/1 labels, ``interval`` for graded ones.

    Range:
        At most 1; undefined if all labels are equal.

    Source:
        Krippendorff, "Content Analysis: An Introduction to its Methodology", 2nd edition, 2004,
        chapter 11.
    """

    direction: ClassVar[Direction] = "higher"

    labels: Annotated[tuple[str, ...], MinLen(2)]
    level: Level = "nominal"

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the agreement, with its interval."""
        ratings = self._read_labels(evidence)
        alpha = krippendorff_alpha(ratings, self.level)
        samples = resample_alpha(ratings, self.level, evidence.n_bootstrap, evidence.rng())
        n_several = int(np.count_nonzero((~np.isnan(ratings)).sum(axis=0) > 1))
        low, high = bootstrap_interval(alpha, samples)
        return [_measure(alpha, n_several, ratings.shape[1], (float(low), float(high)))]

    def _read_labels(self, evidence: Evidence) -> FloatArray:
        return np.stack([_read_label(evidence, name, "labels") for name in self.labels])


def _read_label(evidence: Evidence, name: str, setting: str = "label") -> FloatArray:
    evidence.need("items")
    try:
        return evidence.items.numbers(name)  # type: ignore[union-attr]  # need() raises on None
    except UnknownColumn as error:
        remedy = "choose a numeric column, or make one by a detector: labels:"
        remedy = remedy if name in evidence.items.names else error.remedy  # type: ignore[union-attr]
        raise UnknownColumn(error.message, where=setting, remedy=remedy) from error


def _measure(
    value: float, n_labelled: int, n_items: int, interval: tuple[float, float]
) -> Measurement:
    """Return the agreement on the labelled items; on none of them if it is undefined."""
    n = 0 if np.isnan(value) else n_labelled
    low, high = interval
    return Measurement(value=value, n=n, undefined=n_items - n, ci_low=low, ci_high=high)


@dataclass(frozen=True, kw_only=True)
class _LabelMetric(PerQuery):
    """A metric of the label of the items in each list.

    Args:
        label: The column of the items that holds the label, 0 to 1: ``ngim.gender``.
        threshold: The lowest label that counts as stereotyped; by default all above 0.
        k: How many ranks of each list are evaluated; by default all.
        corrected: Correct the value by the human labels of a sample of the items, by
            prediction-powered inference: the interval then holds the errors of the labels too. By
            default both values are given if the labels are ``audited``.

    Raises:
        UnknownColumn: The items have no such column, or it is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label, or none is audited.

    Range:
        0 to 1; undefined if no item of the list carries the label.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, chapter 3.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})

    label: str
    threshold: Annotated[float, Gt(0.0), Le(1.0)] | None = None
    k: Cutoff = None
    corrected: bool | None = None

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the label, or it is not within 0 and 1."""
        _read_grades(evidence, self.label)
        if self.corrected:
            read_audit(evidence, self.label)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        places, labels = self._place(evidence)
        found = np.append(labels, np.nan)[places]
        values = self._score(np.nan_to_num(found), _find_unlabelled(evidence, places))
        return np.where((places >= 0).any(axis=1), values, np.nan)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        if not self.corrected:
            return super().measure(evidence)
        places, labels = self._place(evidence)
        unlabelled = _find_unlabelled(evidence, places)
        corrected = correct_lists(
            lambda found: self._score(found, unlabelled),
            places,
            np.asarray((places >= 0).any(axis=1)),
            np.nan_to_num(labels),
            read_audit(evidence, self.label),
        )
        units = UnitScores(*self.units(evidence), corrected.values, errors=corrected.audit)
        row = Measurement.from_units(units)
        _report_correction(evidence, corrected, row)
        return [row]

    def _place(self, evidence: Evidence) -> tuple[Codes, FloatArray]:
        """Return the item at each rank, -1 without the label, and the label of each item."""
        labels = self._mark(_read_grades(evidence, self.label))
        item = f"an item without the label {self.label!r}"
        items, is_labelled = locate_items(evidence, ~np.isnan(labels), self.k, item)
        return np.where(is_labelled, items, -1), labels

    def _score(self, labels: FloatArray, unlabelled: BoolArray) -> AnyArray:
        """Return the value of each list, linear in the label at each rank, 0 without one."""
        raise NotImplementedError

    def _mark(self, grades: FloatArray) -> FloatArray:
        """Return 1 for stereotyped items, 0 for others, and NaN without a label."""
        marked = grades > 0 if self.threshold is None else grades >= self.threshold
        return np.where(np.isnan(grades), np.nan, marked)


class HitBad(_LabelMetric):
    """The share of lists with at least one stereotyped item.

        HIT_BAD@k = 1 if x_r = 1 for any r ≤ k, else 0

    x_r is 1 if the item at rank r is stereotyped: its label is above 0, or at least ``threshold``.
    Undefined for a list without an item that carries the label.
    """

    direction: ClassVar[Direction] = "lower"
    is_share = True

    def _score(self, labels: FloatArray, unlabelled: BoolArray) -> AnyArray:
        return np.asarray(1.0 - (1.0 - labels).prod(axis=1))


class MrrBad(_LabelMetric):
    """Reciprocal rank of the first stereotyped item of each list.

        MRR_BAD@k = 1 / (rank of the first r ≤ k with x_r = 1), 0 if there is none

    x_r is 1 if the item at rank r is stereotyped: its label is above 0, or at least ``threshold``.
    Ranks count all items of the list, whether they carry the label or not. Undefined for a list
    without an item that carries the label.
    """

    direction: ClassVar[Direction] = "lower"

    def _score(self, labels: FloatArray, unlabelled: BoolArray) -> AnyArray:
        none_before = np.ones_like(labels)
        none_before[:, 1:] = (1.0 - labels[:, :-1]).cumprod(axis=1)
        return np.asarray((none_before * labels) @ (1.0 / (1.0 + np.arange(labels.shape[1]))))


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

    def _mark(self, grades: FloatArray) -> FloatArray:
        return grades if self.threshold is None else super()._mark(grades)

    def _score(self, labels: FloatArray, unlabelled: BoolArray) -> AnyArray:
        k = self.k or max(labels.shape[1], 1)
        weights = k - np.arange(labels.shape[1], dtype=np.float64)
        maximum = k * (k + 1) / 2 - unlabelled @ weights
        return np.asarray(labels @ weights / np.maximum(maximum, 1.0))


def _find_unlabelled(evidence: Evidence, places: Codes) -> BoolArray:
    """Return which ranks hold an item without the label, ``bool[q, m]``."""
    return np.asarray((places < 0) & evidence.ranked.filled[:, : places.shape[1]])


def read_audit(evidence: Evidence, label: str) -> HumanLabels:
    """Return the human labels of the items.

    Those of ``judge.gender`` and of its grades ``judge.gender_score`` are the columns
    ``judge.audited.gender``, ``..._variance`` and ``judge.audited.probability``.

    Raises:
        NothingLeft: The labels are not audited.
    """
    name, _, kind = label.removesuffix("_score").rpartition(".")
    start = f"{name or kind}.audited."
    columns = [f"{start}{column}" for column in (kind, f"{kind}_variance", "probability")]
    items: Any = evidence.items
    if columns[0] not in items.names or np.isnan(items.numbers(columns[0])).all():
        message = f"no item has a human label beside {label!r}"
        remedy = f"give a sample: labels: [{{name: {name}, ..., audited: labels.csv}}]"
        raise NothingLeft(message, where="corrected", remedy=remedy)
    human, variance, probability = (items.numbers(column) for column in columns)
    is_given = not np.isnan(probability).all()
    return HumanLabels(human, np.nan_to_num(variance), probability if is_given else None)


def _report_correction(evidence: Evidence, corrected: Correction, row: Measurement) -> None:
    """Record how a value was corrected, and warn if too few of its items are audited."""
    n = int(np.count_nonzero(corrected.audit.shares))
    if math.isnan(row.value):
        message = f"people labelled {n:,} of the recommended items, fewer than {LEAST}"
        warn(f"{evidence.metric}: {message}: there is no corrected value")
        return
    if not 0 <= row.value <= 1:
        message = f"the corrected value {row.value:.4g} is not within 0 and 1: label more items"
        warn(f"{evidence.metric}: {message}")
    if corrected.n_wrong < LEAST and (corrected.audit.sampled < 1).any():
        message = f"people contradict {corrected.n_wrong} labels of {n:,} recommended items"
        reason = f"with fewer than {LEAST} the interval may be too narrow; label more items"
        warn(f"{evidence.metric}: {message}: {reason}")
    codes = np.zeros(corrected.values.size, dtype=np.int64)
    parts = corrected.audit.estimate(corrected.values, codes, 1).describe(0)
    for name, value in {"lambda": corrected.lam, **parts}.items():
        record_fact(f"correction.{name}", value)


def _read_grades(evidence: Evidence, label: str) -> FloatArray:
    """Return the label of each item, ``float64[n_items]``; NaN if it does not carry the label."""
    grades = _read_label(evidence, label)
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
        corrected: Correct the value by the human labels of a sample of the items
            (prediction-powered inference, PPI++). By default both values are given if the labels
            are ``audited``.

    Raises:
        UnknownColumn: The items have no such column, or the label is not numeric.
        OutOfRange: A label is not within 0 and 1.
        NothingLeft: No item carries the label, or none is audited.

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
    corrected: bool | None = None

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the label or the attribute."""
        _read_grades(evidence, self.label)
        if self.corrected:
            read_audit(evidence, self.label)
        list(self._iterate_targets(evidence))

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of the catalogue, then that of each value of the attribute."""
        grades = _read_grades(evidence, self.label)
        is_labelled = grades > 0 if self.threshold is None else grades >= self.threshold
        labels = np.where(np.isnan(grades), np.nan, is_labelled)
        parts = (("", np.ones(labels.size, dtype=bool)), *self._iterate_targets(evidence))
        if not self.corrected:
            return [self._summarize(labels[rows], target) for target, rows in parts]
        human = read_audit(evidence, self.label)
        return [self._correct(labels, human, rows, target) for target, rows in parts]

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and the number of items, or 1."""
        return 0.0, 1.0 if self.form == "share" else float(row.n)

    def _summarize(self, labels: FloatArray, target: str) -> Measurement:
        share = replace(Measurement.from_values(labels, share=True), target=target)
        if self.form == "share":
            return share
        return Measurement(float(np.nansum(labels)), share.n, share.undefined, target=target)

    def _correct(
        self, labels: FloatArray, human: HumanLabels, rows: BoolArray, target: str
    ) -> Measurement:
        known = rows & ~np.isnan(labels)
        n, is_audited = int(known.sum()), ~np.isnan(human.labels)
        audited, others = known & is_audited, known & ~is_audited
        if audited.sum() < LEAST or not others.any():
            return Measurement(math.nan, 0, int(rows.sum()), target=target)
        weights: list[FloatArray | None] = [None, None]
        if human.probability is not None:
            weights = [1.0 / human.probability[audited], None]
        mean = estimate_mean(
            human.labels[audited], labels[audited], labels[others], None, *weights
        )
        size = 1.0 if self.form == "share" else float(n)
        low, high = (size * end for end in mean.interval)
        undefined = int(rows.sum()) - n
        return Measurement(
            size * mean.value, n, undefined, target=target, ci_low=low, ci_high=high
        )

    def _iterate_targets(self, evidence: Evidence) -> Iterator[tuple[str, BoolArray]]:
        """Yield each value of the attribute, and which items have it."""
        if self.attribute is None or evidence.items is None:
            return
        with at_setting("attribute"):
            membership = evidence.items.membership(self.attribute)
        columns = membership.matrix.tocsc()
        for code, value in enumerate(membership.values):
            has_value = np.zeros(len(evidence.items.ids), dtype=bool)
            has_value[columns.indices[columns.indptr[code] : columns.indptr[code + 1]]] = True
            yield f"{self.attribute}={value}", has_value


RANK = "rank."
"""The prefix of the labels of responses with the rank of each candidate."""

FIRST_SLOT = "first_slot"
"""The label of responses that tells whether the candidate that is shown first ranks first."""

BLOCK_CELLS = 2**22
"""The largest number of pairs of candidates, over queries, that are compared at once."""


@dataclass(frozen=True, kw_only=True)
class OrderAgreement(PerQuery):
    """How well the rankings agree that a model makes of one set of candidates in several orders.

        agreement(u) = mean over pairs of orders j < l of τ(ranking j, ranking l)
        τ = (concordant - discordant pairs of candidates) / (pairs of candidates)

    1 means that the order of presentation has no influence; rankings that follow a random order
    of presentation have an expected value of 0. A candidate that a reply leaves out has the rank
    that the model gives it, after those that the reply names: many of them raise the agreement.
    Undefined for a query with fewer than two rankings, and for models that do not reorder
    candidates.

    Range:
        -1 to 1; the mean over many orders is not below -1 / (orders - 1).

    Source:
        Kendall, "A New Measure of Rank Correlation", Biometrika 30, 1938.

    >>> compute_agreement(np.array([[[1.0, 2, 3], [1, 3, 2], [1, 2, 3]]])).round(3).tolist()
    [0.556]
    """

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    direction: ClassVar[Direction] = "higher"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        return compute_agreement(_read_labels(evidence, RANK))


@dataclass(frozen=True, kw_only=True)
class FirstSlotShare(PerQuery):
    """How often the candidate that is shown first is ranked first.

        share(u) = |{orders whose first rank is the candidate shown first}| / |{orders}|

    Without an influence of the position, the expected value is 1 / the number of candidates, as
    the orders are random. Orders whose reply names no candidate do not count. Undefined for a
    query without any ranking, and for models that do not reorder candidates.

    Range:
        0 to 1.

    Source:
        The bias of position of Hou et al., "Large Language Models are Zero-Shot Rankers for
        Recommender Systems", ECIR 2024, section 3.3. The measure is ours.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"responses"})
    direction: ClassVar[Direction] = "none"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        first = _read_labels(evidence, FIRST_SLOT)
        counts = (~np.isnan(first)).sum(axis=(1, 2))
        return divide(np.nansum(first, axis=(1, 2)), counts)


def _read_labels(evidence: Evidence, prefix: str) -> FloatArray:
    """Return the labels of the responses to each query and order whose names have a prefix."""
    evidence.need("responses")
    responses, n_queries = evidence.responses, len(evidence.queries)
    labels = responses.labels  # type: ignore[union-attr]  # needed above
    names = [name for name in labels.columns if str(name).startswith(prefix)]
    if not names or "order" not in labels:
        return np.full((n_queries, 0, 0), np.nan)
    orders = labels["order"].to_numpy(dtype=np.int64) - 1
    rows = evidence.queries.ids.find(responses.ids)  # type: ignore[union-attr]
    values = np.full((n_queries, int(orders.max(initial=-1)) + 1, len(names)), np.nan)
    present = rows >= 0
    values[rows[present], orders[present]] = labels[names].to_numpy(dtype=np.float64)[present]
    return values


def compute_agreement(ranks: FloatArray) -> FloatArray:
    """Return the mean of Kendall's tau over the pairs of rankings of each query, ``float64[q]``.

    With s the signs of the differences of all pairs of candidates, in m rankings:

        mean τ = (Σ_pairs (Σ_j s_j)² - Σ_pairs Σ_j s_j²) / ((m - 1) Σ_pairs Σ_j s_j²)

    Args:
        ranks: The rank of each candidate in each ranking, without ties, ``float64[q, m, n]``; NaN
            where there is no ranking, and for queries with fewer candidates.

    Returns:
        NaN for fewer than two rankings, or two candidates.
    """
    n_queries, _, n = ranks.shape
    left, right = np.triu_indices(n, k=1)
    means = np.full(n_queries, np.nan)
    size = max(1, BLOCK_CELLS // max(left.size, 1))
    for start in range(0, n_queries, size):
        block = ranks[start : start + size]
        sums, squares = np.zeros((len(block), left.size)), np.zeros(len(block))
        for ranking in block.transpose(1, 0, 2):
            signs = np.nan_to_num(np.sign(ranking[:, left] - ranking[:, right]))
            sums += signs
            squares += (signs**2).sum(axis=1)
        n_rankings = (~np.isnan(block)).any(axis=2).sum(axis=1)
        scale = (n_rankings - 1.0) * squares
        agreement = (sums**2).sum(axis=1) - squares
        np.divide(agreement, scale, out=means[start : start + size], where=scale > 0)
    return means


_INVALID = "invalid."
"""The prefix of the labels of responses that count the invalid ranks for each reason."""


@dataclass(frozen=True, kw_only=True)
class Unmatched:
    """The number of ranks that hold no item of the catalogue.

        unmatched@k(u) = k - |{ranks of the list of u that hold an item of the catalogue}|

    Recommenders that rank the catalogue have 0, unless fewer than k candidates remain. If the
    model generates replies, there is also a value for each reason (``reason=watched``): the rank
    is ``format`` (not a title), ``watched`` before, ``repeated``, ``newer`` than allowed,
    ``unknown`` (not in the catalogue), or ``missing``. They sum to the total if k is the length of
    the lists, are not computed for a shorter cutoff, and are not tested. Undefined for a query
    without a list or reply; the total is undefined without a catalogue.

    Args:
        k: Cutoff; by default the length of the lists.

    Range:
        0 to k, in ranks.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, section 4.2. The names of the reasons are ours.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = "query"

    k: Cutoff = None

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and k."""
        return 0.0, math.inf if self.k is None else float(self.k)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean, then those of each reason."""
        lists, k = evidence.ranked, self.k or evidence.ranked.k
        counts = k - evidence.in_catalogue[:, :k].sum(axis=1).astype(np.float64)
        reasons = _read_reasons(evidence) if k == lists.k else {}
        has_reply = np.zeros(len(lists), dtype=bool)
        for values in reasons.values():
            has_reply |= ~np.isnan(values)
        counts[~(lists.filled.any(axis=1) | has_reply)] = np.nan
        if not len(evidence.item_ids):
            counts[:] = np.nan
        return [
            evidence.measure_queries(counts),
            *(
                replace(evidence.measure_queries(values), target=f"reason={reason}", units=None)
                for reason, values in reasons.items()
            ),
        ]


def _read_reasons(evidence: Evidence) -> dict[str, FloatArray]:
    """Return the number of invalid ranks of each query by reason; NaN without a reply."""
    responses = evidence.responses
    labels = pd.DataFrame() if responses is None else responses.labels
    columns = [str(name) for name in labels.columns if str(name).startswith(_INVALID)]
    if responses is None or not columns:
        return {}
    rows = Vocabulary(responses.ids).find(evidence.queries.ids.ids)
    counts = {name: labels[name].to_numpy(dtype=np.float64) for name in columns}
    return {
        name.removeprefix(_INVALID): np.append(values, np.nan)[rows]
        for name, values in counts.items()
    }
