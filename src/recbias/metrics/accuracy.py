"""Accuracy: how many of the test items the lists contain, and at which ranks.

The scores are functions of ``hits``, ``bool[q, m]``, true if the item at that rank is relevant;
``n_relevant``, ``int64[q]``, the number of relevant items of each query; and the cutoff ``k``,
which may be larger than m. They return ``float64[q]``: NaN for a query without a relevant item, 0
for a list without a hit. The metrics score lists of queries, whose test items are relevant, and
the items that a model predicts for reviews: the item itself, or those that share a category.

A test set holds what users saw and liked. Under a model of the propensity ``p_i``, the probability
that a relevant item i was seen, and so got into the test set, each hit is weighted by 1 / p_i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt

from recbias.core.context import collect_warnings, warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Matrix, divide
from recbias.core.errors import OutOfRange, UnknownColumn
from recbias.core.evidence import Evidence, Predictions, normalize_gain, rank_discounts
from recbias.core.measures import Bounds, Direction, Measurement
from recbias.core.plugins import OnlyWith
from recbias.core.text import suggest
from recbias.kernels.sparse import block_size, map_blocks
from recbias.metrics.base import Cutoff, PerQuery, Totals, WholeSet
from recbias.metrics.templates.design import check_attribute, require_items

_Counts = npt.NDArray[np.int64]


def _ndcg(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return nDCG@k of each list.

    >>> _ndcg(np.array([[True, False, True]]), np.array([2]), 3).round(4).tolist()
    [0.9197]
    """
    gains = _sum_over_ranks(hits[:, :k], rank_discounts(k))
    return normalize_gain(gains, n_relevant, k)


def _hit_rate(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return 1 for each list with a hit, else 0.

    >>> _hit_rate(np.array([[False, True], [False, False]]), np.array([1, 1]), 2).tolist()
    [1.0, 0.0]
    """
    return _mask_undefined(hits[:, :k].any(axis=1).astype(np.float64), n_relevant)


def _reciprocal_rank(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the reciprocal rank of the first hit of each list, 0 without a hit.

    >>> _reciprocal_rank(np.array([[False, True], [False, False]]), np.array([1, 1]), 2).tolist()
    [0.5, 0.0]
    """
    cut = hits[:, :k]
    ranks = np.argmax(cut, axis=1) + 1 if cut.shape[1] else np.ones(len(cut))
    return _mask_undefined(cut.any(axis=1) / ranks, n_relevant)


def average_precision(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the sum of the precisions at the hits, divided by the most hits possible.

    >>> average_precision(np.array([[True, False, True]]), np.array([2]), 3).round(4).tolist()
    [0.8333]
    """
    cut = hits[:, :k]
    totals = _sum_over_ranks(_compute_precisions(cut), cut)
    return _mask_undefined(totals / np.clip(n_relevant, 1, k), n_relevant)


def _mean_precision(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the mean of the precisions at 1, 2, ..., k.

    >>> _mean_precision(np.array([[True, False]]), np.array([1]), 2).tolist()
    [0.75]
    """
    padding = max(k - hits.shape[1], 0)
    precisions = _compute_precisions(np.pad(hits[:, :k], ((0, 0), (0, padding))))
    return _mask_undefined(_sum_over_ranks(precisions, np.ones(k)) / k, n_relevant)


def _precision(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the number of hits divided by ``k``, even if the list is shorter.

    >>> _precision(np.array([[True, False]]), np.array([3]), 2).tolist()
    [0.5]
    """
    return _mask_undefined(np.count_nonzero(hits[:, :k], axis=1) / k, n_relevant)


def _recall(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the share of the test items among the first ``k``.

    >>> _recall(np.array([[True, False]]), np.array([4]), 2).tolist()
    [0.25]
    """
    n_hits = np.count_nonzero(hits[:, :k], axis=1)
    return _mask_undefined(n_hits / np.maximum(n_relevant, 1), n_relevant)


def _r_precision(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the share of hits among the first R items, R being the number of test items.

    >>> _r_precision(np.array([[True, False, True]]), np.array([2]), 3).tolist()
    [0.5]
    """
    cut = hits[:, :k]
    early = cut & (np.arange(cut.shape[1]) < n_relevant[:, None])
    return _mask_undefined(np.count_nonzero(early, axis=1) / np.maximum(n_relevant, 1), n_relevant)


def _f1(hits: BoolArray, n_relevant: _Counts, k: int) -> FloatArray:
    """Return the harmonic mean of precision and recall: 2 hits / (k + R).

    >>> _f1(np.array([[True, False]]), np.array([2]), 2).tolist()
    [0.5]
    """
    n_hits = np.count_nonzero(hits[:, :k], axis=1)
    return _mask_undefined(2.0 * n_hits / (k + n_relevant), n_relevant)


def _mask_undefined(values: Any, n_relevant: _Counts) -> FloatArray:
    """Return the values, NaN for queries without test items."""
    masked: FloatArray = np.where(n_relevant > 0, values, np.nan)
    return masked


def _compute_precisions(hits: BoolArray) -> FloatArray:
    """Return the precision at each rank, ``float64[q, m]``."""
    ranks = np.arange(1, hits.shape[1] + 1)
    precisions: FloatArray = np.cumsum(hits, axis=1, dtype=np.int32) / ranks
    return precisions


def _sum_over_ranks(values: AnyArray, weights: AnyArray) -> FloatArray:
    """Return the weighted sum over the ranks, in the order of the ranks on every machine."""
    total = np.zeros(len(values))
    for rank in range(values.shape[1]):
        total += values[:, rank] * weights[..., rank]
    return total


_Score: TypeAlias = Callable[[BoolArray, AnyArray, int], FloatArray]
"""A function of hits, numbers of relevant items and the cutoff."""

_BYTES_PER_RANK = 28
"""Memory that a score needs for each rank of a ranking: counts, precisions, gains."""


def require_predictions(evidence: Evidence) -> Predictions:
    """Return the predicted rankings; raise an error if the model predicts none."""
    evidence.need("predictions")
    return evidence.predictions  # type: ignore[return-value]  # need() raises on None


def validate_cutoff(k: int | None, n_items: int) -> None:
    """Refuse a cutoff that is larger than the number of items a model can predict."""
    if k is not None and k > n_items:
        message = f"k is {k}, but a model can predict only {n_items:,} items"
        raise OutOfRange(message, where="k", remedy=f"set k to {n_items} or less")


def check_cutoff(evidence: Evidence, k: int | None) -> None:
    """Refuse a cutoff that is too large for the data, before any training."""
    if evidence.candidates is not None:
        validate_cutoff(k, int(np.count_nonzero(evidence.candidates)))


def compute_in_blocks(
    compute: Callable[[slice], FloatArray], predictions: Predictions, *, bytes_a_row: int = 0
) -> FloatArray:
    """Return the value of each review, ``float64[n]``, in bounded memory.

    ``bytes_a_row`` is the memory per review in addition to the score of its ranking.
    """
    n, width = predictions.ranked.shape
    size = block_size(bytes_a_row + _BYTES_PER_RANK * max(width, 1))
    blocks = map_blocks(lambda start, stop: compute(slice(start, stop)), n, size)
    return np.concatenate([np.empty(0), *blocks])


@dataclass(frozen=True, kw_only=True)
class _CategoryMetric(PerQuery):
    """A score of the ranks of the relevant items of each review.

    Args:
        attribute: The item column of the categories; a cell ``a|b`` has both.
        without: Categories to exclude, such as one that nearly every item has.

    Raises:
        UnknownColumn: The items have no such column, or no such category.

    Range:
        0 to 1; undefined for a review of an item without categories.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"predictions", "items"})
    unit: ClassVar[str] = "review"
    score: ClassVar[_Score]

    attribute: str = "categories"
    without: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> None:
        """Refuse settings that do not suit the data, before any training."""
        build_category_matrix(evidence, self.attribute, self.without)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each review."""
        categories = build_category_matrix(evidence, self.attribute, self.without)
        return score_reviews(evidence, type(self).score, categories)


@dataclass(frozen=True, kw_only=True)
class CategoryPrecision(_CategoryMetric):
    """The share of the first k predicted items that have a category of the item reviewed.

        P@k = relevant items among the first k / k

    An item is relevant if it shares a category with the item reviewed, which is itself relevant.

    Args:
        k: Cutoff; by default the ``k`` of the spec.

    Raises:
        OutOfRange: There are fewer than ``k`` items to predict.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 3, P@5, P@10 and P@20.
    """

    direction: ClassVar[Direction] = "higher"

    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse categories or a cutoff that do not suit the data, before any training."""
        check_cutoff(evidence, self.k)
        super().check(evidence)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each review."""
        categories = build_category_matrix(evidence, self.attribute, self.without)
        return score_reviews(evidence, _precision, categories, self.k)


class CategoryRPrecision(_CategoryMetric):
    """The share of relevant items among the first R, where R is the number of relevant items.

        R-Precision = relevant items among the first R / R

    An item is relevant if it shares a category with the item reviewed, which is itself relevant. R
    is the number of relevant items in the whole ranking.

    Source:
        Buckley and Voorhees, "Retrieval system evaluation", 2005; Shen et al. 2022, table 3,
        R-Prec.
    """

    direction: ClassVar[Direction] = "higher"
    score = _r_precision


class CategoryMAP(_CategoryMetric):
    """Average precision of the whole ranking; items that share a category are relevant.

        AP = (1/R) Σ_r P@r · rel(r),    P@r = relevant items among the first r / r

    ``rel(r)`` is 1 if the item at rank r shares a category with the item reviewed, which is itself
    relevant. R is the number of relevant items in the whole ranking.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; Shen et al.
        2022, table 3, MAP.
    """

    direction: ClassVar[Direction] = "higher"
    score = average_precision


class CategoryMRR(_CategoryMetric):
    """The reciprocal rank of the first item that shares a category with the item reviewed.

        MRR = (1/n) Σ_reviews 1 / rank of the first relevant item

    An item is relevant if it shares a category with the item reviewed, which is itself relevant.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999; Shen et al. 2022, table 3,
        category coverage.
    """

    direction: ClassVar[Direction] = "higher"
    score = _reciprocal_rank


class CategoryNDCG(_CategoryMetric):
    """nDCG of the whole ranking; items that share a category with the item reviewed are relevant.

        nDCG = Σ_r rel(r) / log2(r + 1)  /  Σ_{r ≤ R} 1 / log2(r + 1)

    ``rel(r)`` is 1 if the item at rank r shares a category with the item reviewed, which is itself
    relevant. R is the number of relevant items; the sum is over the whole ranking.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        2002, with the discount log2(r + 1); Shen et al. 2022, table 3, nDCG.
    """

    direction: ClassVar[Direction] = "higher"
    score = _ndcg


def build_category_matrix(evidence: Evidence, attribute: str, without: Sequence[str]) -> Matrix:
    """Return the categories of each item but those of ``without``, ``bool (n_items, m)`` CSR.

    A warning reports a category that all items have.

    Raises:
        UnknownColumn: There is no such column, or no such category.
        NothingLeft: No item has a category.
    """
    check_attribute(evidence, attribute)
    membership = require_items(evidence).membership(attribute)
    for category in without:
        if category not in membership.values:
            message = f"no item has {category!r} among its {attribute}"
            remedy = suggest(category, membership.values)
            raise UnknownColumn(message, where="without", remedy=remedy)
    columns = np.flatnonzero(~np.isin(membership.values, without))
    matrix = membership.matrix[:, columns]
    n_with_category = int(np.count_nonzero(np.diff(matrix.indptr)))
    item_counts = np.bincount(matrix.indices, minlength=columns.size)
    universal = np.flatnonzero(item_counts == n_with_category)
    if n_with_category > 1 and universal.size:
        name = membership.values[columns[universal[0]]]
        reason = f"all items share the {attribute} {name!r}, so every item is relevant"
        warn(f"{evidence.metric}: {reason}; exclude it by without: [{name}]")
    return matrix


def score_reviews(
    evidence: Evidence, score: _Score, categories: Matrix, k: int | None = None
) -> FloatArray:
    """Return a score of the ranks of the relevant items, for each review.

    Reviews are sorted by item, because the reviews of one item have the same relevant items.
    """
    predictions = require_predictions(evidence)
    width = predictions.ranked.shape[1]
    validate_cutoff(k, width)
    order = np.argsort(predictions.items, kind="stable")

    def score_rows(rows: slice) -> FloatArray:
        hits = find_relevant_ranks(predictions, order[rows], categories)
        return score(hits, np.count_nonzero(hits, axis=1), k or width)

    values = np.empty(len(predictions))
    values[order] = compute_in_blocks(score_rows, predictions, bytes_a_row=categories.shape[0])
    undefined = int(np.count_nonzero(np.isnan(values)))
    if undefined:
        reason = "their items share no category with any ranked item"
        warn(f"{evidence.metric}: {undefined:,} reviews are undefined, because {reason}")
    return values


def find_relevant_ranks(
    predictions: Predictions, reviews: AnyArray, categories: Matrix
) -> BoolArray:
    """Return the ranks at which an item shares a category with the item reviewed."""
    items, rows = np.unique(predictions.items[reviews], return_inverse=True)
    shared = (categories[items] @ categories.T).toarray()
    relevant: BoolArray = np.take_along_axis(shared[rows], predictions.ranked[reviews], axis=1)
    return relevant


def warn_of_unknown_items(evidence: Evidence, predictions: Predictions) -> None:
    """Warn of reviews of items that no model can predict."""
    is_known = np.isin(predictions.items, predictions.ranked[:1])
    n_unknown = int(np.count_nonzero(~is_known))
    if n_unknown:
        reason = "no model can predict items without training rows"
        warn(f"{evidence.metric}: {n_unknown:,} reviews are misses, because {reason}")


def count_classes(predictions: Predictions) -> Matrix:
    """Return the class, the predicted class and the correctly predicted class of each review.

    Returns:
        CSR ``int32 (n, 3 c)`` of ones, over the c classes that have reviews: c columns for each of
        the three. A predicted class without reviews has no weight and is excluded.
    """
    from scipy.sparse import coo_array

    classes, codes = np.unique(predictions.items, return_inverse=True)
    predicted = predictions.ranked[:, :1].sum(axis=1)  # also without reviews
    predicted_codes = np.minimum(np.searchsorted(classes, predicted), classes.size - 1)
    has_class = np.flatnonzero(classes[predicted_codes] == predicted)
    hits = np.flatnonzero(predictions.items == predicted)
    reviews = np.arange(len(predictions))
    rows = np.concatenate([reviews, has_class, hits])
    c = classes.size
    columns = np.concatenate([codes, c + predicted_codes[has_class], 2 * c + codes[hits]])
    ones = np.ones(rows.size, dtype=np.int32)
    return coo_array((ones, (rows, columns)), shape=(reviews.size, 3 * c)).tocsr()


def f_measure(counts: AnyArray, alpha: float) -> FloatArray:
    """Return the mean of F over the classes, weighted by their numbers of reviews.

        F = Σ_c (n_c / n) · h_c / (α m_c + (1 - α) n_c)

    n_c is the number of reviews of class c, m_c the number of reviews for which c is predicted,
    h_c the number of these that are of c. α = 1 is precision, 1/2 is F1. A class whose divisor is
    0 counts as 0.

    Args:
        counts: n_c, m_c and h_c, ``int (..., 3 c)``.
        alpha: The weight of precision against recall, 0 to 1.

    >>> counts = np.array([1, 3, 2, 1, 1, 1])  # the second class is predicted once, correctly
    >>> float(f_measure(counts, 1.0)), float(f_measure(counts, 0.5))
    (0.875, 0.5416666666666666)

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """
    n_reviews, n_predicted, n_hits = np.split(counts, 3, axis=-1)
    divisor = alpha * n_predicted + (1.0 - alpha) * n_reviews
    scores = n_hits / np.where(divisor > 0, divisor, 1.0)
    return np.asarray((n_reviews * scores).sum(axis=-1) / n_reviews.sum(axis=-1))


@dataclass(frozen=True, kw_only=True)
class _ReviewMetric(PerQuery):
    """A metric of the items that a model predicts for reviews.

    Range:
        0 to 1; undefined without a review.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"predictions"})
    unit: ClassVar[str] = "review"
    score: ClassVar[_Score]

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each review."""
        return self._score(evidence, None)

    def _score(self, evidence: Evidence, k: int | None) -> FloatArray:
        """Return the score of the first ``k`` items of each ranking."""
        predictions = require_predictions(evidence)
        width = predictions.ranked.shape[1]
        validate_cutoff(k, width)
        warn_of_unknown_items(evidence, predictions)
        ranked, items = predictions.ranked[:, :k], predictions.items

        def score_rows(rows: slice) -> FloatArray:
            hits = ranked[rows] == items[rows, None]
            return type(self).score(hits, np.ones(len(hits), dtype=np.int64), k or width)

        return compute_in_blocks(score_rows, predictions)


class ClassAccuracy(_ReviewMetric):
    """The share of reviews whose item the model ranks first.

        accuracy = (1/n) Σ_r [ first(r) = item(r) ]

    ``item(r)`` is the item reviewed, ``first(r)`` the first item of the ranking that the model
    predicts.

    Source:
        Shen, Li, Bouadjenek, Mai and Sanner, "Unintended bias in language model-driven
        conversational recommendation", 2022, table 3, Acc.
    """

    direction: ClassVar[Direction] = "higher"
    score = _hit_rate
    is_share = True

    def values(self, evidence: Evidence) -> FloatArray:
        """Return 1 or 0 for each review."""
        return self._score(evidence, 1)


class ClassRecall(ClassAccuracy):
    """The mean recall of the items, weighted by their numbers of reviews.

        recall = Σ_c (n_c / n) · h_c / n_c = (1/n) Σ_c h_c

    n_c is the number of reviews of item c, h_c the number of these that have c ranked first. The
    weights cancel the divisors, so it equals the accuracy (``class_accuracy``); papers print both.

    Source:
        ``recall_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen
        et al. 2022, table 3, R.
    """

    direction: ClassVar[Direction] = "higher"


class ClassPrecision(WholeSet):
    """The mean precision of the items, weighted by their numbers of reviews.

        precision = Σ_c (n_c / n) · h_c / m_c

    n_c is the number of reviews of item c among all n, m_c the number of reviews that have c
    ranked first and h_c the number of these that are of c. An item that is never ranked first has
    precision 0, as with scikit-learn's ``zero_division=0``; one without a review has no weight.
    The interval and the tests come from bootstrap samples of the reviews, the same for every
    model.

    Range:
        0 to 1; undefined without a review.

    Source:
        ``precision_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011);
        Shen et al. 2022, table 3, P.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"predictions"})
    direction: ClassVar[Direction] = "higher"
    alpha: ClassVar[float] = 1.0
    """The weight of precision against recall."""

    def totals(self, evidence: Evidence) -> Totals:
        """Return the classes of each review, and their mean F."""
        predictions, alpha = require_predictions(evidence), type(self).alpha
        warn_of_unknown_items(evidence, predictions)
        return Totals(count_classes(predictions), lambda sums: f_measure(sums, alpha))


class ClassF1(ClassPrecision):
    """The mean F1 of the items, weighted by their numbers of reviews.

        F1 = Σ_c (n_c / n) · 2 h_c / (n_c + m_c)

    n_c is the number of reviews of item c among all n, m_c the number of reviews that have c
    ranked first and h_c the number of these that are of c. This is not the harmonic mean of
    ``class_precision`` and ``class_recall``, and may be smaller than both. The interval and the
    tests come from bootstrap samples of the reviews, the same for every model; the interval is on
    the scale of the logarithm, since a small F1 varies less than a large one.

    Source:
        ``f1_score(average="weighted")`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen et
        al. 2022, table 3, F1-Score.
    """

    direction: ClassVar[Direction] = "higher"
    alpha = 0.5
    log_scale = True


class ClassMRR(_ReviewMetric):
    """The mean reciprocal rank of the item reviewed.

        MRR = (1/n) Σ_r 1 / rank(r)

    ``rank(r)`` is the rank, from 1, of the item reviewed in the ranking that the model predicts; a
    review of an item without training rows counts as 0.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999; Shen et al. 2022, table 3.
    """

    direction: ClassVar[Direction] = "higher"
    score = _reciprocal_rank


@dataclass(frozen=True, kw_only=True)
class ClassHitRate(_ReviewMetric):
    """The share of reviews whose item is among the first k of the ranking.

        HR@k = (1/n) Σ_r [ rank(r) ≤ k ]

    ``rank(r)`` is the rank of the item reviewed in the ranking that the model predicts. At k = 1
    it equals ``class_accuracy``.

    Args:
        k: Cutoff; by default the ``k`` of the spec.

    Raises:
        OutOfRange: There are fewer than ``k`` items to predict.

    Source:
        ``top_k_accuracy_score`` of scikit-learn (Pedregosa et al., JMLR 2011); Shen et al. 2022,
        table 3, HR@5, HR@10 and HR@20.
    """

    direction: ClassVar[Direction] = "higher"
    score = _hit_rate
    is_share = True

    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Refuse a cutoff that is too large for the data, before any training."""
        check_cutoff(evidence, self.k)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return 1 or 0 for each review."""
        return self._score(evidence, self.k)


@dataclass(frozen=True, kw_only=True)
class _ListAccuracy(PerQuery):
    """A score of the hits of each list.

    Args:
        k: Cutoff; by default the length of the lists.

    Range:
        0 to 1; undefined for a query without test items.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})
    score: ClassVar[_Score]

    k: Cutoff = None

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        cutoff = self.k or max(evidence.ranked.k, 1)
        return type(self).score(evidence.hits, evidence.n_relevant, cutoff)


class NDCG(_ListAccuracy):
    """The discounted cumulative gain of each list, divided by that of the ideal list.

        nDCG@k = Σ_{r ≤ k} rel(r) / log2(r + 1)  /  Σ_{r ≤ min(R, k)} 1 / log2(r + 1)

    ``rel(r)`` is 1 if the item at rank r is a test item, else 0; R is the number of test items of
    the query. The ideal list begins with as many test items as fit. An empty list has 0.

    Source:
        Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
        2002, with the discount log2(r + 1).
    """

    direction: ClassVar[Direction] = "higher"
    score = _ndcg


class HitRate(_ListAccuracy):
    """The share of queries whose list contains at least one test item.

        HR@k = 1 if rel(r) = 1 for any r ≤ k, else 0

    ``rel(r)`` is 1 if the item at rank r is a test item. Also called Success@k. An empty list
    has 0.

    Source:
        Deshpande and Karypis, "Item-based top-N recommendation algorithms", ACM TOIS 2004.
    """

    direction: ClassVar[Direction] = "higher"
    score = _hit_rate
    is_share = True


class MRR(_ListAccuracy):
    """The reciprocal rank of the first test item in each list.

        MRR@k = 1 / r₁ if r₁ ≤ k, else 0

    ``r₁`` is the rank of the first test item. An empty list has 0.

    Source:
        Voorhees, "The TREC-8 question answering track report", 1999.
    """

    direction: ClassVar[Direction] = "higher"
    score = _reciprocal_rank


class MAP(_ListAccuracy):
    """Average precision: the mean precision at the ranks of the test items.

        AP@k = Σ_{r ≤ k} P@r · rel(r)  /  min(R, k),    P@r = hits among the first r / r

    ``rel(r)`` is 1 if the item at rank r is a test item; R is the number of test items of the
    query. A list that begins with test items only has 1, also if R is larger than k. The Elliot
    framework uses the name MAP for ``mean_precision``; TREC's ``map_cut`` divides by R instead of
    min(R, k). An empty list has 0.

    Source:
        Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR 2000; divided by
        min(R, k), as is usual for lists of length k.
    """

    direction: ClassVar[Direction] = "higher"
    score = average_precision


class MeanPrecision(_ListAccuracy):
    """The mean of the precisions at 1, 2, ..., k, which the Elliot framework calls MAP.

        mean_precision@k = (1/k) Σ_{r ≤ k} P@r,    P@r = hits among the first r / r

    Unlike average precision (``MAP``), every rank counts, whether it is a hit or not, and the
    number of test items does not matter. The ranks after the end of a short list are misses.

    Source:
        Anelli et al., "Elliot: a comprehensive and rigorous framework for reproducible
        recommender systems evaluation", SIGIR 2021, metric MAP as implemented.
    """

    direction: ClassVar[Direction] = "higher"
    score = _mean_precision


class Precision(_ListAccuracy):
    """The share of test items in each list.

        P@k = hits among the first k / k

    The divisor is k even if the list is shorter. An empty list has 0.

    Source:
        Cleverdon, "The Cranfield tests on index language devices", 1967; with a cutoff k.
    """

    direction: ClassVar[Direction] = "higher"
    score = _precision


class Recall(_ListAccuracy):
    """The share of a query's test items that its list contains.

        R@k = hits among the first k / R

    R is the number of test items of the query; if it is larger than k, the recall cannot reach 1.
    An empty list has 0.

    Source:
        Cleverdon, "The Cranfield tests on index language devices", 1967; with a cutoff k.
    """

    direction: ClassVar[Direction] = "higher"
    score = _recall


class RPrecision(_ListAccuracy):
    """The precision at R, where R is the number of test items of the query.

        R-Precision@k = hits among the first min(R, k) / R

    Precision and recall are equal at rank R. If R is larger than the length of the list, the
    missing ranks are misses, so this metric needs long lists. An empty list has 0.

    Source:
        Buckley and Voorhees, "Retrieval system evaluation", in TREC: Experiment and Evaluation
        in Information Retrieval, 2005.
    """

    direction: ClassVar[Direction] = "higher"
    score = _r_precision


class F1(_ListAccuracy):
    """The harmonic mean of precision and recall.

        F1@k = 2 P@k R@k / (P@k + R@k) = 2 hits among the first k / (k + R)

    R is the number of test items of the query. A list without a hit has 0.

    Source:
        van Rijsbergen, "Information Retrieval", 2nd edition, 1979, chapter 7.
    """

    direction: ClassVar[Direction] = "higher"
    score = _f1


@dataclass(frozen=True, kw_only=True)
class Propensity:
    """How likely it is that a relevant item was seen.

        p_i = ( n_i / max_j n_j )^power,    n_i: the training interactions of item i

    Args:
        of: ``popularity``, or a numeric column of the items that holds the propensities.
        power: 0 is no correction; a larger one assumes that rare items were seen less.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, RecSys 2018, section 4.
    """

    of: str = "popularity"
    power: Annotated[float, Ge(0), OnlyWith("of", "popularity")] = 0.5

    def read_column(self, evidence: Evidence) -> FloatArray:
        """Return the column of the items, ``float64[n_items]``."""
        evidence.need("items")
        try:
            return evidence.items.numbers(self.of)  # type: ignore[union-attr]  # need() raises
        except UnknownColumn as error:
            error.where = "propensity.of"
            raise

    def weigh(self, evidence: Evidence, clip: float) -> FloatArray:
        """Return 1 / p of each item, at most ``clip``, ``float64[n_items]``.

        A warning says how many test items are affected by ``clip``.

        Raises:
            OutOfRange: The column has no propensity of a test item, or one of 0 or above 1.
            UnknownColumn: The items have no such column.
        """
        tested = evidence.relevant.indices  # type: ignore[union-attr]  # after need()
        if self.of == "popularity":
            counts = evidence.popularity
            propensities = (counts / max(counts.max(initial=0.0), 1.0)) ** self.power
        else:
            propensities = self.read_column(evidence)
            values = propensities[tested]
            if (wrong := np.flatnonzero(~((values > 0) & (values <= 1)))).size:
                name = evidence.item_ids.ids[tested[wrong[0]]]
                message = f"the item {name} has the propensity {values[wrong[0]]:g}"
                remedy = "a propensity is a probability above 0: give each test item one"
                raise OutOfRange(message, where="propensity.of", remedy=remedy)
        weights = divide(np.ones(propensities.size), propensities)
        is_clipped = ~(weights <= clip)
        if n := int(np.count_nonzero(is_clipped[tested])):
            share = n / tested.size
            reason = f"have a propensity below {1 / clip:.3g} and count {clip:g} times"
            warn(f"{evidence.metric}: {n:,} of the test items ({share:.1%}) {reason}")
        return np.where(is_clipped, clip, weights)


@dataclass(frozen=True, kw_only=True)
class _WeightedAccuracy(PerQuery):
    """A sum over the hits, each weighted by 1 / p.

    With ``snips`` (self-normalised inverse propensity scores) the divisor has the same weights, so
    that a query with one test item has the uncorrected value. With ``ips`` the weights are
    divided by their mean over all test items and the divisor is the uncorrected one: a query
    with rare test items counts more, and the mean varies more; its interval allows for the error
    of the mean weight (those of groups do not). Only ratios of propensities matter, but for
    ``clip``. The propensities are assumed, not measured: compare several powers.

    Args:
        k: Cutoff; by default the length of the lists.
        propensity: The model of the propensities.
        estimator: How the weights are normalised.
        clip: The largest weight 1 / p; larger ones, also of items without training interactions,
            are cut, which is said and lowers the correction.

    Raises:
        OutOfRange: The propensity of a test item is not above 0 and at most 1.
        UnknownColumn: The items have no such column.

    Range:
        0 to 1 with snips, 0 or more with ips; undefined for a query without test items.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test", "train"})

    k: Cutoff = None
    propensity: Propensity = Propensity()
    estimator: Literal["snips", "ips"] = "snips"
    clip: Annotated[float, Gt(1)] = 100.0

    def needs_now(self) -> frozenset[str]:
        """Return the needs, with the items only if they hold the propensities."""
        source = "train" if self.propensity.of == "popularity" else "items"
        return frozenset({"lists", "test", source})

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and 1; a mean by ``ips`` has no upper end."""
        return (0.0, 1.0 if self.estimator == "snips" else math.inf)

    def check(self, evidence: Evidence) -> None:
        """Refuse a column that the items do not have, before any training."""
        if self.propensity.of != "popularity":
            self.propensity.read_column(evidence)

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return the gain of each hit without its weight, ``float64[q, k]``; 0 elsewhere."""
        raise NotImplementedError

    def ideal_gains(self, ranks: AnyArray, k: int) -> FloatArray:
        """Return the gain of a test item at the rank, from 0, of the ideal list."""
        return (ranks < k).astype(np.float64)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        evidence.need("test")
        hits = evidence.hits[:, : self.k]
        weights = self.propensity.weigh(evidence, self.clip)
        items = np.where(hits, evidence.ranked.items[:, : self.k], 0)
        sums = (self.gains(hits) * weights[items]).sum(axis=1)
        of_tests = weights[evidence.relevant.indices]  # type: ignore[union-attr]
        if self.estimator == "ips":
            sums /= of_tests.mean() if of_tests.size else 1.0
            of_tests = np.ones(of_tests.size)
        n = evidence.n_relevant
        queries = np.repeat(np.arange(n.size), n)
        order = np.lexsort((-of_tests, queries))
        ranks = np.arange(order.size) - np.repeat(np.cumsum(n) - n, n)
        ideal = of_tests[order] * self.ideal_gains(ranks, self.k or max(evidence.ranked.k, 1))
        return divide(sums, np.bincount(queries, ideal, n.size))

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float] | None:
        """Return the interval of a mean by ``ips``, with the error of the mean weight."""
        if self.estimator == "snips" or not evidence.n_relevant.any():
            return None
        with collect_warnings():  # what is clipped is said of the values
            weights = self.propensity.weigh(evidence, self.clip)
        n = evidence.n_relevant
        is_tested = n > 0
        sums = (evidence.relevant @ weights)[is_tested]  # type: ignore[operator]
        errors = sums / sums.mean() - n[is_tested] / n[is_tested].mean()
        defined = values[is_tested]
        row = Measurement.from_values(defined - defined.mean() * errors)
        return row.ci_low, row.ci_high


class PropensityNDCG(_WeightedAccuracy):
    """nDCG in which test items that were rarely seen count more.

        snips  Σ_{r ≤ k} rel(r) w_r / log2(r + 1)  /  Σ_{l ≤ k} w_(l) / log2(l + 1),    w = 1 / p
        ips    Σ_{r ≤ k} rel(r) (w_r / w̄) / log2(r + 1)  /  Σ_{l ≤ min(R, k)} 1 / log2(l + 1)

    ``rel(r)`` is 1 if the item at rank r is a test item, ``p`` the propensity of an item,
    ``w_(l)`` the weights of the query's R test items, largest first, ``w̄`` the mean weight of all
    test items. With equal propensities both are nDCG.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, "Unbiased offline recommender evaluation for
        missing-not-at-random implicit feedback", RecSys 2018; Jain, Prabhu and Varma, KDD 2016
        (the ideal list); Schnabel et al., ICML 2016 (ips).
    """

    direction: ClassVar[Direction] = "higher"

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return the discount of the rank of each hit."""
        return np.asarray(hits * rank_discounts(hits.shape[1]))

    def ideal_gains(self, ranks: AnyArray, k: int) -> FloatArray:
        """Return the discounts of the ranks."""
        return np.where(ranks < k, 1.0 / np.log2(ranks + 2.0), 0.0)


class PropensityRecall(_WeightedAccuracy):
    """The share of a query's test items in its list; those that were rarely seen count more.

        snips  Σ_{hits} w  /  Σ_{test items} w,    w = 1 / p
        ips    Σ_{hits} (w / w̄)  /  R

    ``p`` is the propensity of an item, R the number of test items of the query, ``w̄`` the mean
    weight of all test items. With equal propensities both are recall.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, "Unbiased offline recommender evaluation for
        missing-not-at-random implicit feedback", RecSys 2018; Schnabel et al., ICML 2016 (ips).
    """

    direction: ClassVar[Direction] = "higher"

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return 1 for each hit."""
        return hits.astype(np.float64)

    def ideal_gains(self, ranks: AnyArray, k: int) -> FloatArray:
        """Return 1 at every rank, also after k."""
        return np.ones(ranks.size)


class PropensityMAP(_WeightedAccuracy):
    """Average precision in which test items that were rarely seen count more.

        snips  Σ_{r ≤ k} P@r rel(r) w_r  /  Σ_{l ≤ k} w_(l),    w = 1 / p
        ips    Σ_{r ≤ k} P@r rel(r) (w_r / w̄)  /  min(R, k)

    ``P@r`` is the share of hits among the first r, ``rel(r)`` 1 if the item at rank r is a test
    item, ``p`` the propensity of an item, ``w_(l)`` the weights of the query's R test items,
    largest first, ``w̄`` the mean weight of all test items. With equal propensities both are MAP.

    Source:
        Yang, Cui, Xuan, Wang, Belongie and Estrin, "Unbiased offline recommender evaluation for
        missing-not-at-random implicit feedback", RecSys 2018, with c = P@r; Schnabel et al., ICML
        2016 (ips).
    """

    direction: ClassVar[Direction] = "higher"

    def gains(self, hits: BoolArray) -> FloatArray:
        """Return the precision at the rank of each hit."""
        return np.asarray(hits * np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1))
