"""The popularity of recommended items: its level, its distribution, and the use of the catalogue.

The popularity of an item is its number of training interactions, its number of interactions in
all parts of the split, or a column of the items table. Lists and histories are rows of a CSR
matrix ``(rows, n_items)`` of ones; an *aggregate* computes one value for each row from the values
of its items. Items of unknown popularity (outside the catalogue, or with a missing or negative
cell in the column) are excluded and counted in a warning, as are items that are not candidates
where the lists that hold each candidate are counted.

Fairness to individual items is how evenly the lists hold them. The corrected measures are rescaled
to what lists of these lengths can reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Gt, Interval

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Interactions, Matrix, divide
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import OutOfRange, at_setting
from recbias.core.evidence import Evidence, mark_contained
from recbias.core.measures import Bounds, Direction, Measurement, limit_ends
from recbias.core.plugins import OnlyWith
from recbias.kernels.sparse import build_rows
from recbias.metrics.base import (
    Cutoff,
    PerQuery,
    Totals,
    WholeSet,
    mark_candidates,
    warn_excluded,
)
from recbias.statistics.agreement import spearman
from recbias.statistics.bootstrap import CountedValues, Slopes, resample_counts
from recbias.statistics.inequality import (
    cover,
    cover_without_rows,
    entropy,
    entropy_without_rows,
    fair_share,
    gini,
    gini_without_rows,
    head,
    jain,
    jain_without_rows,
    make_even_counts,
    make_uneven_counts,
)

Aggregate: TypeAlias = Callable[[Matrix, FloatArray], FloatArray]
"""From rows of items ``(n, n_items)`` and the value of each item to one value for each row; NaN is
undefined."""

_COUNTS = (None, "train", "all")
"""The values of the setting ``popularity`` that count interactions."""

_COLUMN = "items."
"""Before the name of a column that is called like one of them: ``items.all``."""

BLOCK_PAIRS = 2**22
"""The number of (row, item) pairs that are sorted at once."""


def _is_counted(popularity: str | None) -> bool:
    """Return whether the setting ``popularity`` counts interactions; else it names a column."""
    return popularity in _COUNTS


def read_popularity(evidence: Evidence, popularity: str | None) -> FloatArray:
    """Return the popularity of each item, ``float64[n_items]``; NaN if it is unknown.

    Args:
        evidence: The data.
        popularity: ``train`` or None for the number of training interactions, ``all`` for that of
            all interactions, else a column of the items.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.
    """
    if popularity == "all":
        evidence.need("item_counts")
        return evidence.item_counts  # type: ignore[return-value]  # need() raises on None
    if popularity is None or _is_counted(popularity):
        return evidence.popularity
    column = popularity.removeprefix(_COLUMN)
    column = column if _is_counted(column) else popularity
    evidence.need("items")
    with at_setting("popularity"):
        numbers = evidence.items.numbers(column)  # type: ignore[union-attr]  # need() raises
    return np.where(numbers >= 0, numbers, np.nan)


def aggregate_lists(
    evidence: Evidence, values: FloatArray, aggregate: Aggregate, k: int | None
) -> FloatArray:
    """Return the aggregate of the first ``k`` items of each list, ``float64[q]``."""
    rows = build_list_matrix(evidence, k)
    _warn_excluded_positions(evidence, k, int(np.count_nonzero(~np.isnan(values)[rows.indices])))
    return aggregate(rows, values)


def _warn_excluded_positions(evidence: Evidence, k: int | None, n_known: int) -> None:
    """Warn of the positions of the lists that are excluded, all but ``n_known``."""
    n_listed = int(np.count_nonzero(evidence.ranked.items[:, :k] >= 0))
    n_inside = int(np.count_nonzero(evidence.in_catalogue[:, :k]))
    warn_excluded(evidence, n_listed - n_inside, "no item of the catalogue")
    warn_excluded(evidence, n_inside - n_known, "an item of unknown popularity")


def _aggregate_histories(
    evidence: Evidence, values: FloatArray, aggregate: Aggregate
) -> FloatArray:
    """Return the aggregate of the training items of each query, ``float64[q]``.

    A query that is not a user has no history: NaN.
    """
    histories = build_history_matrix(evidence)
    if n_unknown := int(np.count_nonzero(np.isnan(values)[histories.indices])):
        message = "items of the histories have an unknown popularity and are excluded"
        warn(f"{evidence.metric}: {n_unknown:,} {message}")
    aggregates = aggregate(histories, values)
    return np.where(evidence.queries.users >= 0, aggregates, np.nan)


def average_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the mean value of each row; NaN if none of its items has a value."""
    known = ~np.isnan(values)
    return divide(rows @ np.where(known, values, 0.0), rows @ known.astype(np.float64))


def _average_finite_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the mean finite value of each row; NaN if none of its items has one."""
    return average_rows(rows, np.where(np.isfinite(values), values, np.nan))


def sum_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the sum of the values of each row; NaN if none of its items has a value."""
    known = ~np.isnan(values)
    total: FloatArray = rows @ np.where(known, values, 0.0)
    return np.where(rows @ known.astype(np.float64) > 0, total, np.nan)


def herfindahl(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the sum of the squared shares of each row; NaN if its values sum to 0."""
    filled = np.where(np.isnan(values), 0.0, values)
    return divide(rows @ filled**2, (rows @ filled) ** 2)


def gini_of_rows(rows: Matrix, values: FloatArray) -> FloatArray:
    """Return the Gini index of the values of each row; NaN if they sum to 0."""
    from scipy.sparse import csr_array

    n_rows = rows.shape[0]
    size = max(1, BLOCK_PAIRS * n_rows // max(rows.nnz, 1))
    order = np.argsort(values)  # NaN comes last; the order of equal values does not matter
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size)
    known = ~np.isnan(values[order])
    ascending = np.where(known, values[order], 0.0)
    coefficients = [np.empty(0)]
    for start in range(0, n_rows, size):
        block = rows[start : start + size]
        cells = (np.ones(block.nnz), rank[block.indices], block.indptr)
        ranked = csr_array(cells, shape=block.shape)
        ranked.sort_indices()
        n, total = ranked @ known.astype(np.float64), ranked @ ascending
        starts = np.repeat(block.indptr[:-1], np.diff(block.indptr))
        ranked.data = np.arange(1, block.nnz + 1) - starts.astype(np.float64)
        coefficients.append(divide(2.0 * (ranked @ ascending) - (n + 1.0) * total, n * total))
    return np.concatenate(coefficients)


def build_list_matrix(evidence: Evidence, k: int | None) -> Matrix:
    """Return which items of the catalogue each list holds: CSR ``(q, n_items)`` of ones."""
    items, known = evidence.ranked.items[:, :k], evidence.in_catalogue[:, :k]
    return build_rows(items, known, len(evidence.item_ids))


def build_history_matrix(evidence: Evidence) -> Matrix:
    """Return the training items of each query, CSR ``(q, n_items)``; none if it is not a user."""
    from scipy.sparse import csr_array, vstack

    evidence.need("train")
    histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
    users = evidence.queries.users
    if np.array_equal(users, np.arange(histories.shape[0])):
        return histories
    if (users >= 0).all():
        return histories[users]
    empty_row = csr_array((1, histories.shape[1]), dtype=histories.dtype)
    return vstack([histories, empty_row], format="csr")[users]


def count_by_user(evidence: Evidence, popularity: str | None) -> Matrix:
    """Return the contribution of each user to the popularity of each item, CSR ``(n, n_items)``.

    These are the training interactions. Where those of all parts of the split are counted, they
    are scaled to their numbers.
    """
    from scipy.sparse import dia_array

    evidence.need("train")
    counts = _count_pairs(evidence.train)  # type: ignore[arg-type]  # need() raises on None
    if popularity != "all":
        return counts
    of_train = evidence.popularity
    ratio = read_popularity(evidence, popularity) / np.where(of_train > 0, of_train, np.inf)
    return counts @ dia_array((ratio[None, :], [0]), shape=(ratio.size, ratio.size)).tocsr()


def _count_pairs(train: Interactions) -> Matrix:
    """Return the number of rows of each user and item, CSR ``float64 (n_users, n_items)``."""
    from scipy.sparse import coo_array, csr_array

    ones, pairs = np.ones(len(train)), train.binary
    if pairs.nnz == len(train):  # no pair is repeated: the positions are shared
        return csr_array((ones, pairs.indices, pairs.indptr), shape=pairs.shape)
    return coo_array((ones, (train.users, train.items)), shape=pairs.shape).tocsr()


def weigh_averages(rows: Matrix, counted: BoolArray) -> Slopes:
    """Return the weight of each item in the mean of its row.

    Args:
        rows: The items of each query, CSR ``(q, n_items)`` of ones.
        counted: Which items have a value, ``bool[n_items]``.
    """
    of_item = counted.astype(np.float64)
    return Slopes(rows, 1.0 / np.maximum(rows @ of_item, 1.0), of_item)


def differentiate_logarithms(
    weights: Sequence[Slopes], popularity: FloatArray, base: float = np.e
) -> tuple[Sequence[Slopes], Sequence[Slopes]]:
    """Return the slopes and curvatures of weighted means of logarithms of the popularity.

    Args:
        weights: The weights of the items in the value of each query, which add up.
        popularity: The popularity, ``float64[n_items]``.
        base: The base of the logarithm.
    """
    inverse = np.divide(1.0, popularity, out=np.zeros(popularity.size), where=popularity > 0)
    slopes = [part.scale(of_count=inverse / np.log(base)) for part in weights]
    return slopes, [part.scale(of_count=-inverse) for part in slopes]


@dataclass(frozen=True, kw_only=True)
class CandidateMetric(WholeSet):
    """A metric of how many lists hold each candidate.

    The value depends on the number of lists, also if the users of all of them are alike: compare
    values of equal numbers of lists. The interval refers to the value expected of as many lists of
    other users. Its standard error is that of the jackknife, which leaves out each list in turn,
    with Student's t; there is none for a single list, or if all samples have the same value, as
    those of equal lists.

    Args:
        k: How many ranks of each list are evaluated; by default all.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    score: ClassVar[Callable[[AnyArray], FloatArray]]
    """From counts of the candidates, ``int[..., n_candidates]``, to values."""
    without_rows: ClassVar[Callable[[Matrix], FloatArray] | None] = None
    """The value without each row of a CSR matrix of 0 and 1, ``float64[q]``."""

    k: Cutoff = None

    def totals(self, evidence: Evidence) -> Totals:
        """Return the candidates of each list, and the score of their counts."""
        counts = build_candidate_matrix(evidence, self.k)
        return Totals(counts, type(self).score, type(self).without_rows)


class ItemCoverage(CandidateMetric):
    """The share of the candidates that are recommended to at least one user.

        ItemCoverage@k = |{ i : n_i > 0 }| / |C|

    C is the set of candidates, the items with a training interaction; n_i is the number of lists
    that hold candidate i. Also called aggregate diversity and, as a measure of fairness to items,
    QF. Undefined without a query or a candidate.

    Few lists hold fewer items than many: compare values of equal numbers of lists. The interval
    refers to the value expected of as many lists, of other users. It is Student's, with the
    standard error of the jackknife.

    Range:
        0 to 1; undefined without a query or a candidate.

    Source:
        Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy: evaluating recommender systems by
        coverage and serendipity", RecSys 2010, catalog coverage.
    """

    direction: ClassVar[Direction] = "higher"
    score = cover
    without_rows = cover_without_rows
    is_step: ClassVar[bool] = True


class Gini(CandidateMetric):
    """How unevenly the recommendations are distributed over the candidates.

        Gini@k = Σ_i (2 i - |C| - 1) n_i / (|C| Σ_i n_i),    n ascending, i from 1

    C is the set of candidates, the items with a training interaction; n_i is the number of lists
    that hold candidate i, possibly 0. The index is 0 if all candidates are recommended equally
    often and near 1 if a few receive all recommendations. Undefined if no list holds a candidate.

    Few lists are less even than many by chance alone: compare values of equal numbers of lists.
    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to 1 - 1/|C|; undefined if no list holds a candidate.

    Source:
        Gini, "Variabilità e mutabilità", 1912; for recommendations: Fleder and Hosanagar,
        "Blockbuster culture's next rise or fall", Management Science 2009.
    """

    direction: ClassVar[Direction] = "lower"
    score = gini
    without_rows = gini_without_rows


def _compute_bits(counts: AnyArray) -> FloatArray:
    return np.asarray(entropy(counts) / np.log(2.0))


def _compute_bits_without_rows(counts: Matrix) -> FloatArray:
    return np.asarray(entropy_without_rows(counts) / np.log(2.0))


class Entropy(CandidateMetric):
    """The Shannon entropy, in bits, of the distribution of recommendations over the candidates.

        Entropy@k = -Σ_i p_i log2 p_i,    p_i = n_i / Σ_j n_j,    0 log2 0 = 0

    n_i is the number of lists that hold candidate i, an item with a training interaction. The
    entropy is 0 if all recommendations are of one item, and log2 of the number of candidates if
    all candidates are recommended equally often. Undefined if no list holds a candidate.

    Few lists are less even than many by chance alone: compare values of equal numbers of lists.
    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to log2 |C| bits; undefined if no list holds a candidate.

    Source:
        Shannon, "A mathematical theory of communication", 1948, section 6.
    """

    direction: ClassVar[Direction] = "higher"
    score = _compute_bits
    without_rows = _compute_bits_without_rows

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, whose interval ends at that of equally frequent candidates."""
        most = math.log2(max(int(np.count_nonzero(mark_candidates(evidence))), 1))
        (row,) = super().measure(evidence)
        low, high = limit_ends((row.ci_low, row.ci_high), (0.0, most), row.value)
        return [replace(row, ci_low=low, ci_high=high)]


def build_candidate_matrix(evidence: Evidence, k: int | None) -> Matrix:
    """Return which candidates each list holds: CSR ``(q, n_candidates)`` of ones."""
    columns, counted = locate_candidates(evidence, k)
    n_candidates = int(np.count_nonzero(mark_candidates(evidence)))
    return build_rows(columns, counted, n_candidates, np.int32(1))


def locate_candidates(evidence: Evidence, k: int | None) -> tuple[AnyArray, BoolArray]:
    """Return the number of each position's item among the candidates, and which have one."""
    items, candidates = evidence.ranked.items[:, :k], mark_candidates(evidence)
    numbers = np.append(np.where(candidates, np.cumsum(candidates) - 1, -1), -1)
    columns = numbers[np.where(evidence.in_catalogue[:, :k], items, -1)]
    counted = columns >= 0
    n_excluded = int(np.count_nonzero(items >= 0)) - int(np.count_nonzero(counted))
    warn_excluded(evidence, n_excluded, "an item that is not a candidate")
    return columns, counted


@dataclass(frozen=True, kw_only=True)
class _OfPopularity(InheritsSections):
    """A metric of popularity, which is counted or read from a column of the items.

    Args:
        popularity: What φ is: ``train`` counts the training interactions (the default), ``all``
            those of all parts of the split; any other text is a column of the items. Columns
            called ``train`` and ``all`` are written ``items.train`` and ``items.all``.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train"})
    also_needs: ClassVar[frozenset[str]] = frozenset()
    """The kinds of evidence that the metric needs, wherever the popularity comes from."""

    popularity: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a popularity column replaces the training interactions."""
        return self.also_needs | {"lists", "train" if _is_counted(self.popularity) else "items"}

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn if the items have no such numeric column."""
        read_popularity(evidence, self.popularity)


class _HistoryComparison(_OfPopularity, PerQuery):
    """A metric that compares the popularity of a user's list with that of the history."""

    also_needs = frozenset({"train"})
    aggregate: ClassVar[Callable[..., FloatArray]] = average_rows
    """From rows of items and the value of each item to one value for each row."""

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        values = self._transform(read_popularity(evidence, self.popularity))
        aggregate = type(self).aggregate
        lists = aggregate_lists(evidence, values, aggregate, self.k)
        return self._compare(lists, _aggregate_histories(evidence, values, aggregate))

    def _transform(self, popularity: FloatArray) -> FloatArray:
        return popularity

    def _compare(self, lists: FloatArray, histories: FloatArray) -> FloatArray:
        return lists - histories


@dataclass(frozen=True, kw_only=True)
class _LevelComparison(_HistoryComparison):
    """A comparison of levels, corrected for the sampling error of a counted popularity.

    Args:
        corrected: Whether the values are corrected where the popularity is counted. Corrected, the
            mean refers to all users that could be sampled, of whom those of the training data are
            a sample, and its interval includes the sampling error of the counts; tests and the
            intervals of groups (``by``) treat the popularity as known. ``false`` is the value of
            the source: it refers to the popularity in these training data, which the interval
            treats as known.
    """

    corrected: Annotated[bool, OnlyWith("popularity", *_COUNTS)] = True

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        values = super().values(evidence)
        return self._count(evidence, values).correct() if self._is_corrected else values

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float] | None:
        """Return an interval that accounts for counted popularity."""
        return self._count(evidence, values).compute_interval() if self._is_corrected else None

    @property
    def _is_corrected(self) -> bool:
        return self.corrected and _is_counted(self.popularity)

    def _count(self, evidence: Evidence, values: FloatArray) -> CountedValues:
        """Return the values with their derivatives by the counts."""
        counts = count_by_user(evidence, self.popularity)
        return CountedValues(values, evidence.queries.users, counts, *self._derive(evidence))

    def _derive(self, evidence: Evidence) -> tuple[Sequence[Slopes], Sequence[Slopes]]:
        """Return the first and second derivatives by the popularity of each item."""
        raise NotImplementedError


class _SpreadComparison(_HistoryComparison):
    """A comparison of how unevenly popularities are spread."""

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float] | None:
        """Return an interval that accounts for counted popularity."""
        if not _is_counted(self.popularity):
            return None
        counts = count_by_user(evidence, self.popularity)
        prepare = partial(self._prepare, evidence)
        return resample_counts(values, evidence.queries.users, counts, prepare, rng=evidence.rng())

    def _prepare(self, evidence: Evidence, rows: AnyArray) -> Callable[[FloatArray], FloatArray]:
        """Return a function from the popularity of each item to the value of these queries."""
        lists = build_list_matrix(evidence, self.k)[rows]
        histories = build_history_matrix(evidence)[rows]
        aggregate = type(self).aggregate

        def evaluate(popularity: FloatArray) -> FloatArray:
            values = self._transform(popularity)
            return self._compare(aggregate(lists, values), aggregate(histories, values))

        return evaluate


_Share: TypeAlias = Annotated[float, Interval(ge=0, le=1)]
"""The share that the head holds."""


@dataclass(frozen=True, kw_only=True)
class _OfLongTail(_OfPopularity):
    """A metric of the items outside the head.

    Args:
        head: The share that the head holds.
        head_of: What it is a share of: the ``interactions``, or the number of ``items``.
    """

    head: _Share = 0.8
    head_of: Literal["interactions", "items"] = "interactions"

    def mark_tail(self, evidence: Evidence) -> FloatArray:
        """Return 1 for the items of the long tail and 0 for the head, ``float64[n_items]``.

        Items without a training interaction are in the tail, but do not count among the items that
        the head holds a share of: the number of rows of items.csv does not matter. An item of
        unknown popularity is in neither (NaN).
        """
        popularity = read_popularity(evidence, self.popularity)
        known = ~np.isnan(popularity)
        tail = np.where(known, 1.0, np.nan)
        inside = known if evidence.candidates is None else known & evidence.candidates
        tail[inside] = ~head(popularity[inside], self.head, of=self.head_of)
        return tail


class APLT(_OfLongTail, PerQuery):
    """Average share of long-tail items in the lists.

        APLT@k = |L_u ∩ T| / |L_u|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds the share ``head`` of the interactions, or of
    the items; of equally popular items those with the lower code are in the head. Undefined for an
    empty list.

    Range:
        0 to 1; undefined for an empty list.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    direction: ClassVar[Direction] = "higher"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        return aggregate_lists(evidence, self.mark_tail(evidence), average_rows, self.k)


class ACLT(_OfLongTail, PerQuery):
    """Average number of long-tail items in the lists.

        ACLT@k = |L_u ∩ T|

    L_u is the list of user u cut at k. T is the long tail: the items outside the head, which is
    the smallest set of most popular items that holds the share ``head`` of the interactions, or of
    the items; of equally popular items those with the lower code are in the head. Undefined for an
    empty list.

    Range:
        0 or more, at most k; undefined for an empty list.

    Source:
        Abdollahpouri, Burke and Mobasher, "Managing popularity bias in recommender systems with
        personalized re-ranking", FLAIRS 2019.
    """

    direction: ClassVar[Direction] = "higher"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        return aggregate_lists(evidence, self.mark_tail(evidence), sum_rows, self.k)

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and k."""
        return 0.0, math.inf if self.k is None else float(self.k)


_MAX_NAMED_ITEMS = 5
"""The number of items that an error names."""


class ARP(_OfPopularity, PerQuery):
    """Average recommendation popularity: the mean popularity of the items of a list.

        ARP@k = (1 / |L_u|) Σ_{i in L_u} φ(i)

    L_u is the list of user u cut at k, φ the popularity of an item. Undefined for an empty list.

    Range:
        0 or more, in interactions; undefined for an empty list.

    Source:
        Yin, Cui, Li, Yao and Chen, "Challenging the long tail recommendation", VLDB 2012.
    """

    direction: ClassVar[Direction] = "lower"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        popularity = read_popularity(evidence, self.popularity)
        return aggregate_lists(evidence, popularity, average_rows, self.k)


@dataclass(frozen=True, kw_only=True)
class LogPopularityDifference(_LevelComparison):
    """Mean log popularity of a user's list minus that of the user's history.

        Δ(u) = (1/|p_r|) Σ_{i in p_r} ln φ(i)  -  (1/|p_u|) Σ_{i in p_u} ln φ(i)

    p_r is the user's list cut at k, p_u the user's training items, φ the popularity of an item;
    the logarithm is natural. 0 is neutral; a positive value is a list that is more popular than
    the history: ln 2 if its items are twice as popular. Popularity 0 has no logarithm: such items
    of a list are excluded and counted, in a history they raise an error, unless ``smoothing`` is
    added to every φ. Items of unknown popularity are excluded and counted. Undefined if none
    remains in the list or in the history.

    Where the popularity is counted, the value is corrected (``corrected``): with the
    interactions h_u(i) of the user with the item, ln φ(i) is replaced by

        ln φ(i) - h_u(i) / φ(i) + Σ_v h_v(i)² / ( 2 φ(i)² )

    which is ln φ + 1 / (2 φ) for an item of the list, and ln φ - 1 / (2 φ) for one of the history,
    if nobody has an item twice. The first term beside ln φ leaves out the user's own interactions,
    which make items of a history look popular; the second is the bias of the logarithm of a count.

    Args:
        smoothing: Added to the popularity of every item before the logarithm; null adds nothing.

    Raises:
        OutOfRange: An item of a history has popularity 0, and there is no smoothing.

    Range:
        Any number; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, "Large language models as recommender systems: a study
        of popularity bias", Gen-IR at SIGIR 2024, equation 2.
    """

    direction: ClassVar[Direction] = "zero"
    aggregate = _average_finite_rows

    smoothing: Annotated[float, Gt(0)] | None = None

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn for the column, OutOfRange for a history with popularity 0."""
        self._reject_zero_popularity(evidence)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        self._reject_zero_popularity(evidence)
        listed = build_list_matrix(evidence, self.k).indices
        n_zeros = np.count_nonzero(self._mark_zeros(evidence)[listed])
        if n_zeros:
            message = "positions of the lists hold an item of popularity 0 and are excluded"
            warn(f"{evidence.metric}: {n_zeros:,} {message}")
        return super().values(evidence)

    def _derive(self, evidence: Evidence) -> tuple[Sequence[Slopes], Sequence[Slopes]]:
        smoothed = read_popularity(evidence, self.popularity) + (self.smoothing or 0.0)
        lists = weigh_averages(build_list_matrix(evidence, self.k), smoothed > 0)
        histories = weigh_averages(build_history_matrix(evidence), smoothed > 0)
        return differentiate_logarithms((lists, histories.scale(-1.0)), smoothed)

    def _transform(self, popularity: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):  # ln 0 is excluded from the means
            return np.log(popularity + (self.smoothing or 0.0))

    def _mark_zeros(self, evidence: Evidence) -> BoolArray:
        """Return which items have no logarithm, ``bool[n_items]``."""
        smoothed = read_popularity(evidence, self.popularity) + (self.smoothing or 0.0)
        return np.asarray(smoothed == 0)

    def _reject_zero_popularity(self, evidence: Evidence) -> None:
        """Raise OutOfRange, which names the items, if an item of a history has no logarithm."""
        zeros = np.flatnonzero(self._mark_zeros(evidence))
        if zeros.size:
            zeros = np.intersect1d(zeros, build_history_matrix(evidence).indices)
        if not zeros.size:
            return
        names = ", ".join(evidence.item_ids.ids[zeros[:_MAX_NAMED_ITEMS]])
        more = ", ..." if zeros.size > _MAX_NAMED_ITEMS else ""
        message = (
            f"{zeros.size:,} item(s) of the histories have popularity 0, which has no logarithm: "
            f"{names}{more}"
        )
        remedy = "set smoothing: 1 to add 1 to every popularity, or exclude these items"
        raise OutOfRange(message, where="smoothing", remedy=remedy)


class PopularityLift(_LevelComparison):
    """Relative difference in mean popularity between a user's list and the user's history.

        lift(u) = ( AP(L_u) - AP(H_u) ) / AP(H_u),    AP(X) = (1/|X|) Σ_{i in X} φ(i)

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    0 is neutral, 1 is a list that is twice as popular as the history, -1 the minimum. Undefined
    for an empty list, or a history that is empty or has popularity 0.

    Where the popularity is counted, the value is corrected (``corrected``) for the user's own
    interactions, which raise AP(H_u) by c: 1 if nobody has an item twice.

        lift(u) = ( AP(L_u) / AP(H_u) ) ( 1 + c / AP(H_u) ) - 1

    Range:
        -1 or more; undefined for an empty list or history.

    Source:
        Abdollahpouri, Mansoury, Burke and Mobasher, "The connection between popularity bias,
        calibration, and fairness in recommendation", RecSys 2020; here for one user at a time.
    """

    direction: ClassVar[Direction] = "zero"

    def _derive(self, evidence: Evidence) -> tuple[Sequence[Slopes], Sequence[Slopes]]:
        popularity = read_popularity(evidence, self.popularity)
        every_item = np.ones(popularity.size, dtype=bool)
        histories = weigh_averages(build_history_matrix(evidence), every_item)
        lists = weigh_averages(build_list_matrix(evidence, self.k), every_item)
        of_history, of_list = (
            part.of_query * (part.rows @ popularity) for part in (histories, lists)
        )
        inverse = np.divide(1.0, of_history, out=np.zeros(of_history.size), where=of_history > 0)
        return (lists.scale(inverse), histories.scale(-of_list * inverse**2)), ()

    def _compare(self, lists: FloatArray, histories: FloatArray) -> FloatArray:
        return divide(lists - histories, histories)


_HEAD_AND_TAIL = ("head", "tail")
"""The groups of items that are compared."""


class _Disparity(_OfLongTail, WholeSet):
    """The probabilities of the items of head and tail compared."""

    is_absolute = True

    def summarize(self, values: FloatArray) -> FloatArray:
        """Return the difference of both probabilities divided by their sum."""
        return divide(values[..., 0] - values[..., 1], values.sum(axis=-1))


class PopREO(_Disparity):
    """Head and long tail compared by the probability that a relevant item is recommended.

        PopREO@k = std(P_head, P_tail) / mean(P_head, P_tail)
        P_g = Σ_u |L_u ∩ R_u ∩ g| / Σ_u |R_u ∩ g|

    L_u is the list of user u cut at k, R_u the candidates (items with a training interaction)
    among the user's test items, g the head or the long tail. P_g is the probability that a
    relevant item of g is recommended; std divides by the number of groups, so the value is
    |P_head - P_tail| / (P_head + P_tail): 0 is equal opportunity, 1 is one group that is never
    recommended. The head is the smallest set of most popular items that holds the share ``head``
    of the interactions, or of the items. Undefined if a group has no relevant item, or no relevant
    item is recommended.

    Range:
        0 to 1; undefined if a group has no relevant item or no relevant item is recommended.

    Source:
        Zhu, Wang and Caverlee, "Measuring and mitigating item under-recommendation bias in
        personalized ranking systems", SIGIR 2020, REO, with popularity groups.
    """

    needs = frozenset({"lists", "train", "test"})
    direction: ClassVar[Direction] = "zero"
    also_needs = frozenset({"test"})

    def totals(self, evidence: Evidence) -> Totals:
        """Return the numbers of items of head and tail of each list, and their disparity."""
        from scipy.sparse import csr_array

        evidence.need("test")
        groups, relevant = _build_groups(evidence, self), evidence.relevant
        hits = build_list_matrix(evidence, self.k).multiply(relevant != 0).tocsr() @ groups
        n_relevant = _count_by_group(evidence, "test items", relevant, groups)
        counts = csr_array(np.hstack([hits, n_relevant]))

        def estimate(sums: AnyArray) -> FloatArray:
            return divide(sums[..., :2], sums[..., 2:])

        return Totals(counts, estimate, groups=_HEAD_AND_TAIL)


class PopRSP(_Disparity):
    """Head and long tail compared by the probability that an item is recommended.

        PopRSP@k = std(P_head, P_tail) / mean(P_head, P_tail)
        P_g = Σ_u |L_u ∩ g| / Σ_u |g - H_u|

    L_u is the list of user u cut at k, H_u the user's training items, g the candidates (items with
    a training interaction) in the head or the long tail. P_g is the probability that an item of g
    outside the user's history is recommended; std divides by the number of groups, so the value is
    |P_head - P_tail| / (P_head + P_tail): 0 is parity, 1 is one group that is never recommended.
    The head is the smallest set of most popular items that holds the share ``head`` of the
    interactions, or of the items. Undefined if a group has no such item, or no list holds one.

    Range:
        0 to 1; undefined if a group has no item or no list holds one.

    Source:
        Zhu, Wang and Caverlee, "Measuring and mitigating item under-recommendation bias in
        personalized ranking systems", SIGIR 2020, RSP, with popularity groups.
    """

    direction: ClassVar[Direction] = "zero"
    also_needs = frozenset({"train"})

    def totals(self, evidence: Evidence) -> Totals:
        """Return the numbers of items of head and tail of each list, and their disparity."""
        from scipy.sparse import csr_array

        groups = _build_groups(evidence, self)
        lists = build_list_matrix(evidence, self.k)
        recommended = _count_by_group(evidence, "items of the lists", lists, groups)
        histories = build_history_matrix(evidence)
        n_history = _count_by_group(evidence, "items of the histories", histories, groups)
        n_pairs = len(evidence.queries) * groups.sum(axis=0)

        def estimate(sums: AnyArray) -> FloatArray:
            return divide(sums[..., :2], n_pairs - sums[..., 2:])

        counts = csr_array(np.hstack([recommended, n_history]))
        return Totals(counts, estimate, groups=_HEAD_AND_TAIL)


def _build_groups(evidence: Evidence, metric: _OfLongTail) -> FloatArray:
    """Return which candidates are in the head and in the tail, ``float64[n_items, 2]``."""
    tail = metric.mark_tail(evidence)
    evidence.need("train")
    candidates = evidence.candidates
    if candidates is None:
        candidates = evidence.popularity > 0
    groups = np.stack([tail == 0, tail == 1], axis=1) & candidates[:, None]
    return groups.astype(np.float64)


def _count_by_group(
    evidence: Evidence, label: str, rows: Matrix, groups: FloatArray
) -> FloatArray:
    """Return how many items of head and tail each row holds, ``float64[q, 2]``."""
    n_excluded = int(np.count_nonzero(groups.sum(axis=1)[rows.indices] == 0))
    if n_excluded:
        message = "are not candidates of known popularity and are excluded"
        warn(f"{evidence.metric}: {n_excluded:,} {label} {message}")
    counts: FloatArray = rows @ groups
    return counts


class GiniDifference(_SpreadComparison):
    """Gini index of the popularities in a user's list minus that in the user's history.

        Gini(L_u) - Gini(H_u),    Gini(X) = Σ_i ((2 i - n - 1) / n) φ_i / Σ_j φ_j

    L_u is the list of user u cut at k, H_u the user's training items, φ_1 ≤ ... ≤ φ_n the
    popularities of the n items of X. 0 is neutral; a positive value is a list whose popularities
    are less even than those of the history. The index does not depend on the level: equally
    popular items have Gini 0, whether they are popular or rare. Undefined if the list or the
    history is empty or has popularity 0.

    The interval of a counted popularity refers to all users that could be sampled: a bootstrap of
    the users counts the popularity again, and the interval is as wide as its error and bias
    together. Tests and the intervals of groups (``by``) treat the popularity as known.

    Range:
        -1 to 1; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, section 3.2, after Adomavicius
        and Kwon, "Maximizing aggregate recommendation diversity", DiveRS at RecSys 2011.
    """

    direction: ClassVar[Direction] = "zero"
    aggregate = gini_of_rows


class HerfindahlDifference(_SpreadComparison):
    """Herfindahl index of the popularities in a user's list minus that in the user's history.

        H(L_u) - H(H_u),    H(X) = Σ_{i in X} ( φ(i) / Σ_{j in X} φ(j) )²

    L_u is the list of user u cut at k, H_u the user's training items, φ the popularity of an item.
    H is 1/n if all n items are equally popular, and near 1 if one item has nearly all
    interactions. A history that is longer than the list tends to have a smaller H, so the value of
    random lists is not 0: compare models with each other, not with 0. Undefined if the list or the
    history is empty or has popularity 0.

    The interval of a counted popularity refers to all users that could be sampled: a bootstrap of
    the users counts the popularity again, and the interval is as wide as its error and bias
    together. Tests and the intervals of groups (``by``) treat the popularity as known.

    Range:
        -1 to 1; undefined for an empty list or history.

    Source:
        Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024, section 3.2, after Adomavicius
        and Kwon, "Maximizing aggregate recommendation diversity", DiveRS at RecSys 2011.
    """

    direction: ClassVar[Direction] = "zero"
    aggregate = herfindahl


@dataclass(frozen=True, kw_only=True)
class PopularityRankCorrelation(_OfPopularity, PerQuery):
    """Rank correlation between the popularity of the items of a list and their position.

        ρ(u) = - Spearman( φ(i), rank_u(i) ),    i in L_u ∩ X

    L_u is the list of user u cut at k, rank_u the position in it from 1 at the top, φ the
    popularity of an item; X is the set chosen by ``over``. 1 is a list sorted by descending
    popularity, -1 by ascending; the minus sign makes positive values a bias towards popular items,
    as in the other metrics. Equally popular items share their mean rank.

    - ``list``: all items of the list.
    - ``history``: the items of the user's history, as in the text of Lichtenberg et al. (items in
      both the recommended and the consumed set). All recommenders of this package exclude the
      history from the list, so this is for imported lists.
    - ``test``: the user's test items, the matched items of Zhu et al.

    Undefined for fewer than two such items, or if all are equally popular.

    Args:
        over: Which items of the list are correlated: ``list``, ``history`` or ``test``.

    Range:
        -1 to 1; undefined for fewer than two such items, or equally popular ones.

    Source:
        Zhu, He, Zhao, Zhang, Wang and Caverlee, "Popularity-opportunity bias in collaborative
        filtering", WSDM 2021, PRU; Lichtenberg, Buchholz and Schwöbel, Gen-IR at SIGIR 2024,
        section 3.2.
    """

    direction: ClassVar[Direction] = "zero"

    over: Literal["list", "history", "test"] = "list"

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: those of the popularity, and of ``over``."""
        more = {"list": frozenset[str](), "history": {"train"}, "test": {"test"}}[self.over]
        return super().needs_now() | more

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        popularity = read_popularity(evidence, self.popularity)
        items, known = evidence.ranked.items[:, : self.k], evidence.in_catalogue[:, : self.k]
        listed = np.append(popularity, np.nan)[np.where(known, items, -1)]
        _warn_excluded_positions(evidence, self.k, int(np.count_nonzero(~np.isnan(listed))))
        listed[~self._mark_positions(evidence)[:, : self.k]] = np.nan
        return _correlate_with_rank(listed)

    def _mark_positions(self, evidence: Evidence) -> BoolArray:
        if self.over == "test":
            return evidence.hits
        if self.over == "history":
            return mark_contained(build_history_matrix(evidence), evidence.ranked)
        return evidence.in_catalogue


def _correlate_with_rank(popularity: FloatArray) -> FloatArray:
    """Return minus the rank correlation of popularity and position, ``(..., k)`` to ``(...)``."""
    height = -np.arange(popularity.shape[-1], dtype=np.float64)
    return spearman(popularity, np.broadcast_to(height, popularity.shape))


_ROUNDING = 1e-12
"""A range of values below this is a rounding error: the measure cannot vary."""


class _CorrectedMetric(CandidateMetric):
    """A measure of the counts of the candidates, rescaled to its reachable range.

    Source:
        Rampisela, Maistro, Ruotsalo and Lioma, "Evaluation measures of individual item fairness
        for recommender systems: a critical study", ACM TORS 2024.
    """

    def totals(self, evidence: Evidence) -> Totals:
        """Return the candidates and the reached ranks of each list, and the rescaled measure."""
        counts, both = self._build_counts(evidence)
        n = counts.shape[1]
        without = type(self).without_rows
        return Totals(
            both,
            lambda sums: self._rescale(type(self).score(sums[..., :n]), sums[..., n:], n),
            None if without is None else lambda rows: self._leave_out(rows, without, n),
        )

    def _build_counts(self, evidence: Evidence) -> tuple[Matrix, Matrix]:
        """Return the candidates of each list; and these with the ranks that each list reaches."""
        from scipy.sparse import csr_array, hstack

        counts = build_candidate_matrix(evidence, self.k)
        if not counts.shape[1]:
            return counts, counts
        starts, n_ranks = counts.indptr, evidence.ranked.items[:, : self.k].shape[1]
        ranks = np.arange(counts.nnz, dtype=starts.dtype) - np.repeat(starts[:-1], np.diff(starts))
        shape = (counts.shape[0], max(n_ranks, 1))
        reached = csr_array((counts.data, ranks, starts), shape=shape)
        return counts, hstack([counts, reached], format="csr")

    def _leave_out(
        self, rows: Matrix, without: Callable[[Matrix], FloatArray], n: int
    ) -> FloatArray:
        """Return the measure without each list."""
        lengths = rows[:, n:]
        left = np.asarray(lengths.sum(axis=0)).ravel() - lengths.toarray()
        return self._rescale(without(rows[:, :n]), left, n)

    def _rescale(self, scores: FloatArray, lengths: AnyArray, n: int) -> FloatArray:
        """Return scores rescaled so that 0 is the value of the least even lists, 1 the most."""
        distinct, inverse = np.unique(np.atleast_2d(lengths), axis=0, return_inverse=True)
        score = type(self).score
        worst = score(make_uneven_counts(distinct, n))[inverse.ravel()]
        best = score(make_even_counts(distinct.sum(axis=1), n))[inverse.ravel()]
        span = best - worst
        excess = np.atleast_1d(scores) - worst
        undefined = np.full(span.shape, np.nan)
        share = np.divide(excess, span, out=undefined, where=np.abs(span) > _ROUNDING)
        return np.asarray(self._orient(share).reshape(np.shape(scores)))

    def _orient(self, share: FloatArray) -> FloatArray:
        return share


class CorrectedJain(_CorrectedMetric):
    """Jain's index, rescaled to the range that the lists can reach.

        corrected_Jain@k = (J - J_min) / (J_max - J_min),    J = S² / ( |C| Σ_i n_i² )
        J_min = k / |C|,    J_max = S² / ( |C| ( |C| f² + r (2 f + 1) ) )
        S = Σ_i n_i,    f = ⌊S / |C|⌋,    r = S mod |C|

    C is the set of candidates, n_i the number of lists that hold candidate i. 0 is the same k
    items for everybody, 1 is the most even distribution that S recommendations allow. If lists are
    shorter than k, J_min is the value of lists that all begin with the same items. Undefined if
    the measure has one possible value: of a single list, or if lists hold all candidates.

    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to 1; undefined if the lists can reach one value only.
    """

    direction: ClassVar[Direction] = "higher"
    score = jain
    without_rows = jain_without_rows


class CorrectedQF(_CorrectedMetric):
    """Item coverage (QF), rescaled to the range that the lists can reach.

        corrected_QF@k = (x - k) / (min(|C|, S) - k),    x = |{ i : n_i > 0 }|,    S = Σ_i n_i

    C is the set of candidates, n_i the number of lists that hold candidate i. 0 is the same k
    items for everybody, 1 is lists that hold every candidate, or no candidate twice if there are
    more candidates than recommendations. k is the length of the longest list. Undefined if the
    measure has one possible value: of a single list, or if lists hold all candidates.

    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to 1; undefined if the lists can reach one value only.

    Source:
        Rampisela et al., ACM TORS 2024; QF: Zhu, Liu, Wu, Zheng and Chen, "A fairness-aware
        hybrid recommender system", FATREC at RecSys 2018.
    """

    direction: ClassVar[Direction] = "higher"
    is_step: ClassVar[bool] = True
    score = cover
    without_rows = cover_without_rows


class CorrectedEntropy(_CorrectedMetric):
    """The entropy of the recommendations, rescaled to the range that the lists can reach.

        corrected_Entropy@k = (H - H_min) / (H_max - H_min)
        H = -Σ_i p_i log p_i,    p_i = n_i / S,    S = Σ_i n_i,    H_min = log k

    C is the set of candidates, n_i the number of lists that hold candidate i; H_max is the entropy
    of S recommendations that are distributed over C as evenly as possible. 0 is the same k items
    for everybody. If lists are shorter than k, H_min is the value of lists that all begin with the
    same items. Undefined if the measure has one possible value: of a single list, or if lists hold
    all candidates.

    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to 1; undefined if the lists can reach one value only.
    """

    direction: ClassVar[Direction] = "higher"
    score = entropy
    without_rows = entropy_without_rows


class CorrectedGini(_CorrectedMetric):
    """The Gini index of the recommendations, rescaled to the range that the lists can reach.

        corrected_Gini@k = (G - G_min) / (1 - k / |C| - G_min)
        G_min = (|C| - r) r / ( |C| S ),    S = Σ_i n_i,    r = S mod |C|

    G is ``Gini``, C the set of candidates, n_i the number of lists that hold candidate i. 0 is the
    most even distribution that S recommendations allow, 1 the same k items for everybody. If lists
    are shorter than k, 1 is the value of lists that all begin with the same items. Undefined if
    the measure has one possible value: of a single list, or if lists hold all candidates.

    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to 1; undefined if the lists can reach one value only.
    """

    direction: ClassVar[Direction] = "lower"
    score = gini
    without_rows = gini_without_rows

    def _orient(self, share: FloatArray) -> FloatArray:
        return 1.0 - share


class CorrectedFSat(_CorrectedMetric):
    """The share of candidates with their maximin share, rescaled.

        corrected_FSat@k = (FSat - k / |C|) / (1 - k / |C|)

    FSat is the share of the candidates that at least ⌊S / |C|⌋ lists hold, of S recommendations;
    k is the length of the longest list. 0 is the same k items for everybody, 1 is every candidate
    with its share. The published correction is used, although a few lists can fall below 0: of 10
    candidates and 4 lists of 5, four items may be in all lists and four others in one each.
    It is 1 if there are fewer recommendations than candidates, whose share is then 0. Undefined if
    no list holds a candidate, or a list holds all candidates.

    Range:
        at most 1, and rarely below 0.

    Source:
        Rampisela et al., ACM TORS 2024; FSat: Patro et al., "FairRec", WWW 2020.
    """

    direction: ClassVar[Direction] = "higher"
    score = fair_share

    def _rescale(self, scores: FloatArray, lengths: AnyArray, n: int) -> FloatArray:
        worst = np.count_nonzero(lengths, axis=-1) / n
        return divide(scores - worst, 1 - worst)


class Jain(CandidateMetric):
    """Jain's index of how evenly the recommendations are distributed over the candidates.

        Jain@k = (Σ_i n_i)² / ( |C| Σ_i n_i² )

    C is the set of candidates, the items with a training interaction; n_i is the number of lists
    that hold candidate i, possibly 0. The index is 1 if all candidates are recommended equally
    often, and x/|C| if x candidates are, and the others never. Even the fairest lists do not reach
    1 unless |C| divides the number of recommendations: ``corrected_Jain`` accounts for this.
    Undefined if no list holds a candidate.

    Few lists are less even than many by chance alone: compare values of equal numbers of lists.
    The interval refers to the value expected of as many lists, of other users. It is
    Student's, with the standard error of the jackknife.

    Range:
        0 to 1; undefined if no list holds a candidate.

    Source:
        Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource
        allocation in shared computer systems", DEC TR-301, 1984; for recommendations: Zhu et al.,
        "FARM: a fairness-aware recommendation method for high visibility and low visibility mobile
        apps", IEEE Access 2020.
    """

    direction: ClassVar[Direction] = "higher"
    score = jain
    without_rows = jain_without_rows


class FSat(CandidateMetric):
    """The share of the candidates that get their maximin share of the recommendations.

        FSat@k = |{ i : n_i ≥ ⌊S / |C|⌋ }| / |C|,    S = Σ_i n_i

    C is the set of candidates, the items with a training interaction; n_i is the number of lists
    that hold candidate i, possibly 0. The maximin share is what the item with the fewest
    recommendations has if they are distributed as evenly as possible. With fewer recommendations
    than candidates it is 0, so that FSat is 1 whatever is recommended. Undefined if no list holds
    a candidate.

    Range:
        0 to 1; undefined if no list holds a candidate.

    Source:
        Patro, Biswas, Ganguly, Gummadi and Chakraborty, "FairRec: two-sided fairness for
        personalized recommendations in two-sided platforms", WWW 2020.
    """

    direction: ClassVar[Direction] = "higher"
    score = fair_share


@dataclass(frozen=True, kw_only=True)
class _JointExposure(InheritsSections):
    """A metric of the difference between the exposure of each candidate and its target.

    Args:
        gamma: The probability that a user who has seen an item goes on to the next rank.
        k: How many ranks of each list are evaluated; by default all.

    Source:
        Wu, Mitra, Ma, Diaz and Liu, "Joint multisided exposure fairness for recommendation",
        SIGIR 2022; browsing model: Moffat and Zobel, "Rank-biased precision for measurement of
        retrieval effectiveness", ACM TOIS 2008.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})

    gamma: Annotated[float, Interval(gt=0, lt=1)] = 0.8
    k: Cutoff = None

    def _build_differences(self, evidence: Evidence) -> tuple[Matrix, FloatArray]:
        """Return exposure minus target, CSR ``(q, candidates)``, and the relevant candidates."""
        from scipy.sparse import csr_array

        evidence.need("test")
        codes = np.flatnonzero(mark_candidates(evidence))
        relevant = evidence.relevant[:, codes]  # type: ignore[index]  # need() raises
        relevant = csr_array(
            ((relevant.data != 0).astype(np.float64), relevant.indices, relevant.indptr),
            shape=relevant.shape,
        )
        n_relevant = np.asarray(relevant.sum(axis=1), dtype=np.float64)
        targets = (1 - self.gamma**n_relevant) / ((1 - self.gamma) * np.maximum(n_relevant, 1.0))
        columns, counted = locate_candidates(evidence, self.k)
        exposures = self.gamma ** np.arange(columns.shape[1])
        exposure = build_rows(columns, counted, codes.size, exposures)
        relevant.data *= np.repeat(targets, np.diff(relevant.indptr))
        return exposure - relevant, n_relevant


class IndividualExposure(_JointExposure, PerQuery):
    """Mean squared difference between the exposure of items to a user and its target (II-F).

        II-F@k(u) = ( 1 / |C| ) Σ_{i in C} ( E_ui - E*_ui )²
        E_ui = γ^(r - 1) at rank r of the list of u, else 0
        E*_ui = (1 - γ^R) / ( R (1 - γ) ) for the R relevant candidates of u, else 0

    C is the set of candidates, the items with a training interaction. The target is the mean
    exposure of the relevant items over all orders of an ideal list. A single list cannot give
    equal exposure to two items, so that 0 is reached only with one relevant item and an empty
    rest; a stochastic model comes closer. The authors' code counts exposure from γ, not from 1,
    which multiplies the value by γ², and includes queries without a relevant item, with targets of
    0; that of Rampisela et al. (WWW 2025) includes them too, but counts from 1. Undefined for a
    query without a relevant candidate.

    Range:
        0 or more; undefined for a query without a relevant candidate.
    """

    direction: ClassVar[Direction] = "lower"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        differences, n_relevant = self._build_differences(evidence)
        np.square(differences.data, out=differences.data)
        squares = np.asarray(differences.sum(axis=1), dtype=np.float64)
        return np.where(n_relevant > 0, squares / max(differences.shape[1], 1), np.nan)


class OverallExposure(_JointExposure, WholeSet):
    """Mean squared difference between the exposure of items to all users and its target (AI-F).

        AI-F@k = ( 1 / |C| ) Σ_{i in C} ( ( 1 / m ) Σ_u ( E_ui - E*_ui ) )²
        E_ui = γ^(r - 1) at rank r of the list of u, else 0
        E*_ui = (1 - γ^R) / ( R (1 - γ) ) for the R relevant candidates of u, else 0

    C is the set of candidates, the items with a training interaction, m the number of queries with
    a relevant candidate. An item that is shown too little to one user and too much to another is
    treated fairly: AI-F is at most ``II-F``. Fewer users make the value larger by chance alone.
    The authors' code counts exposure from γ, not from 1, which multiplies the value by γ², and
    includes queries without a relevant item, with targets of 0; that of Rampisela et al.
    (WWW 2025) includes them too, but counts from 1. Undefined without a query with a relevant
    candidate.

    Range:
        0 or more; undefined without a query with a relevant candidate.
    """

    direction: ClassVar[Direction] = "lower"

    def totals(self, evidence: Evidence) -> Totals:
        """Return the differences of each query, and the mean square of their means."""
        differences, n_relevant = self._build_differences(evidence)
        rows = differences if n_relevant.all() else differences[np.flatnonzero(n_relevant > 0)]
        scale = rows.shape[0] ** 2 * max(rows.shape[1], 1)

        def estimate(sums: AnyArray) -> FloatArray:
            return np.asarray(np.square(sums).sum(axis=-1) / scale)

        return Totals(rows, estimate, n_excluded=n_relevant.size - rows.shape[0])
