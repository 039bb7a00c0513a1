"""Diversity and novelty: how different the items of a list and the lists of users are.

How surprising the recommended items are, what the lists hold beyond the popularity baseline, and
how the lists compare with ideal lists of a synthetic world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from recbias.core.dataset import AnyArray, BoolArray, Codes, FloatArray, Matrix, Odds, divide
from recbias.core.errors import BrokenContract
from recbias.core.evidence import Evidence, mark_contained, rank_ideal_lists, weigh_lists
from recbias.core.measures import Bounds, Direction, Measurement
from recbias.kernels.sparse import build_rows
from recbias.metrics.base import (
    Cutoff,
    PerQuery,
    Totals,
    WholeSet,
    locate_items,
    mark_candidates,
)
from recbias.metrics.calibration import read_attribute_shares
from recbias.metrics.identity import measure_mean_jaccard
from recbias.metrics.popularity import (
    aggregate_lists,
    average_rows,
    build_history_matrix,
    build_list_matrix,
    count_by_user,
    differentiate_logarithms,
    weigh_averages,
)
from recbias.statistics.bootstrap import CountedValues, resample_counts


@dataclass(frozen=True, kw_only=True)
class InterUserDistance(WholeSet):
    """The mean distance between the lists of two users: how personal the lists are.

        D@k = 1 / ( m (m - 1) ) Σ_{u ≠ v} ( 1 - |L_u ∩ L_v| / k )
            = 1 - Σ_i n_i (n_i - 1) / ( k m (m - 1) )

    L_u is the list of user u cut at k, m the number of lists that are not empty, n_i the number of
    lists that hold item i: all pairs are counted exactly, without forming them. 0 is the same list
    for everybody, 1 is no item in common for any two users. Lists shorter than k share fewer
    items; the cosine, as in recmetrics, differs from this distance for them only. Undefined with
    fewer than two lists.

    Args:
        k: How many ranks of each list are evaluated; by default the length of the lists.

    Range:
        0 to 1; undefined with fewer than two lists.

    Source:
        Zhou, Kuscsik, Liu, Medo, Wakeling and Zhang, "Solving the apparent diversity-accuracy
        dilemma of recommender systems", PNAS 2010, personalization.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "higher"

    k: Cutoff = None

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        k = self.k or max(evidence.ranked.k, 1)
        items = evidence.ranked.items[:, :k]
        rows = items[(items >= 0).any(axis=1)]
        listed = rows >= 0
        n_codes = len(evidence.item_ids) + evidence.ranked.outside.size
        counts = build_rows(rows, listed, n_codes, np.int32(1))
        n_pairs = k * len(rows) * (len(rows) - 1)

        def estimate(sums: AnyArray) -> FloatArray:
            n = np.asarray(sums, dtype=np.float64)
            shared = np.einsum("...i,...i->...", n, n) - n.sum(axis=-1)
            return np.asarray(1.0 - shared / n_pairs if n_pairs else shared * np.nan)

        n_empty = len(items) - len(rows)
        return Totals(counts, estimate, n_excluded=n_empty)


_BLOCK_VALUES = 2**22
"""Sums of vectors held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class IntraListDistance(PerQuery):
    """The mean distance between the items of a list, over attributes or vectors.

        ILD@k(u) = 2 / ( n (n - 1) ) Σ_{i < j in L_u} ( 1 - cos(x_i, x_j) )

    L_u are the n items of the list of user u cut at k that have a vector. With ``attribute``, x_i
    holds 1 for each value of item i, 0 for the others; otherwise x_i is the embedding of the item
    in the model that recommends, or in the model ``embeddings_of``, so that all models are
    measured by the same vectors. 0 is a list of items alike, 1 a list whose items have no value in
    common. The Hamming distance of RecTools counts the values in which two items differ instead.
    Undefined for a list with fewer than two items that have a vector.

    Args:
        attribute: A column of the items, or a label of a detector: ``genres``.
        embeddings_of: The label of a model whose item embeddings are used, such as a model
            ``vectors`` that reads them from files. By default those of the measured model.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: The column holds numbers that are neither within 0 and 1 nor whole.
        NothingLeft: No item has the attribute.

    Range:
        0 to 2; 0 to 1 over attributes; undefined for a list with fewer than two vectors.

    Source:
        Ziegler, McNee, Konstan and Lausen, "Improving recommendation lists through topic
        diversification", WWW 2005, intra-list similarity; as a mean distance: Vargas and Castells,
        "Rank and relevance in novelty and diversity metrics for recommender systems", RecSys 2011.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists"})
    direction: ClassVar[Direction] = "higher"

    attribute: str | None = None
    embeddings_of: str | None = None
    k: Cutoff = None

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: the lists, and where the vectors come from."""
        own = frozenset({"embeddings"}) if self.embeddings_of is None else frozenset[str]()
        return self.needs | (own if self.attribute is None else {"items"})

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the attribute, or it has no categories."""
        if self.attribute is not None:
            read_attribute_shares(evidence, self.attribute)

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and 1 over attributes, which have no negative cosines, else 0 and 2."""
        return 0.0, 2.0 if self.attribute is None else 1.0

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        vectors, has_vector = self._read_unit_vectors(evidence)
        lists = _build_list_matrix(evidence, has_vector, self.k)
        n = np.diff(lists.indptr).astype(np.float64)
        similarity = _square_sums(lists, vectors) - n
        n_pairs = n * (n - 1.0)
        return np.asarray(np.clip(1.0 - divide(similarity, n_pairs), 0.0, 2.0))

    def _read_unit_vectors(self, evidence: Evidence) -> tuple[Matrix | FloatArray, BoolArray]:
        """Return the vectors of length 1, and which items have one."""
        from scipy.sparse import diags_array

        if self.attribute is not None:
            shares = read_attribute_shares(evidence, self.attribute)
            lengths = np.sqrt(np.asarray(shares.power(2).sum(axis=1)))
            unit = diags_array(1.0 / np.where(lengths > 0, lengths, 1.0)) @ shares
            return unit.tocsr(), lengths > 0
        kind = "embeddings" if self.embeddings_of is None else "choosing_embeddings"
        evidence.need(kind)
        items = getattr(evidence, kind).items
        if items is None:
            message = f"{self.embeddings_of or 'the model'} has no embeddings of items"
            remedy = "choose a model that embeds the items, or set attribute"
            raise BrokenContract(message, remedy=remedy)
        vectors = items.astype(np.float64)
        norms = np.linalg.norm(vectors, axis=1)
        has_vector = norms > 0  # a missing vector is NaN
        return np.where(has_vector[:, None], vectors, 0.0) / np.where(has_vector, norms, 1.0)[
            :, None
        ], has_vector


def _build_list_matrix(evidence: Evidence, has_vector: BoolArray, k: int | None) -> Matrix:
    """Return which items with a vector each list holds, CSR ``(q, n_items)`` of ones."""
    items, counted = locate_items(evidence, has_vector, k, "an item without a vector")
    return build_rows(items, counted, len(evidence.item_ids))


def _square_sums(lists: Matrix, vectors: Matrix | FloatArray) -> FloatArray:
    """Return the squared length of the sum of the vectors of each list, ``float64[q]``."""
    size = max(1, _BLOCK_VALUES // max(vectors.shape[1], 1))
    lengths = [np.empty(0)]
    for start in range(0, lists.shape[0], size):
        sums = lists[start : start + size] @ vectors
        squares = sums.power(2) if hasattr(sums, "power") else np.square(sums)
        lengths.append(np.asarray(squares.sum(axis=1), dtype=np.float64))
    return np.concatenate(lengths)


@dataclass(frozen=True, kw_only=True)
class SelfInformation(PerQuery):
    """The mean self-information (novelty) of the recommended items, in bits.

        I@k(u) = ( 1 / |L_u| ) Σ_{i in L_u} log2( U / n_i )

    L_u is the list of user u cut at k, U the number of users with a training interaction, n_i the
    number of those with one with item i. 0 is an item that every user has, log2 U one that a
    single user has: a list of rare items is novel. Items without a training interaction have no
    finite value; they are excluded and counted in a warning, while RecTools gives them n_i = 1.
    Undefined for a list without an item that has a training interaction.

    The value is corrected (``corrected``) for the bias of the logarithm of a count, and of items
    of a user's own history, which imported lists may hold: log2( U / n_i ) is replaced by

        log2( U / n_i ) - ( 1 / (2 n_i) + 1 / (2 U) - [i in H_u] / n_i ) / ln 2

    Args:
        corrected: Whether the values are corrected. Corrected, the mean refers to all users that
            could be sampled, of whom those of the training data are a sample, and its interval
            includes the sampling error of the counts; tests and the intervals of groups (``by``)
            treat the counts as known. ``false`` is the value of the source: it refers to the
            counts in these training data, which the interval treats as known.
        k: How many ranks of each list are evaluated; by default all.

    Range:
        0 or more, about log2 U at most; undefined for an empty list.

    Source:
        Zhou, Kuscsik, Liu, Medo, Wakeling and Zhang, "Solving the apparent diversity-accuracy
        dilemma of recommender systems", PNAS 2010, surprisal.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train"})
    direction: ClassVar[Direction] = "higher"

    corrected: bool = True
    k: Cutoff = None

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        counts = self._count_users(evidence)
        histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
        n_users = _count_active_users(histories)
        bits = np.where(counts > 0, np.log2(max(n_users, 1) / np.maximum(counts, 1)), np.nan)
        values = aggregate_lists(evidence, bits, average_rows, self.k)
        if not self.corrected:
            return values
        return np.maximum(self._count(evidence, values).correct(), 0.0)

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float] | None:
        """Return an interval that accounts for the counts."""
        return self._count(evidence, values).compute_interval() if self.corrected else None

    def _count(self, evidence: Evidence, values: FloatArray) -> CountedValues:
        counts = self._count_users(evidence)
        weights = weigh_averages(build_list_matrix(evidence, self.k), counts > 0)
        derivatives = differentiate_logarithms([weights], counts.astype(float), base=0.5)
        histories = evidence.train.binary.astype(np.float64)  # type: ignore[union-attr]
        return CountedValues(values, evidence.queries.users, histories, *derivatives)

    def _count_users(self, evidence: Evidence) -> AnyArray:
        evidence.need("train")
        histories = evidence.train.binary  # type: ignore[union-attr]  # need() raises on None
        return np.bincount(histories.indices, minlength=histories.shape[1])


def _count_active_users(histories: Matrix) -> int:
    """Return the number of users with a training interaction."""
    return int(np.count_nonzero(np.diff(histories.indptr)))


@dataclass(frozen=True, kw_only=True)
class _BaselineMetric(PerQuery):
    """A metric of the listed items that ``MostPop`` does not recommend to the same user.

    The interval refers to all users that could be sampled: a bootstrap of the users counts the
    popularity again, and the interval is as wide as its error and bias together.

    Args:
        k: How many ranks of each list, and of the list of the baseline, are evaluated; by default
            the length of the lists.

    Range:
        0 to 1; undefined for an empty list.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train"})

    k: Cutoff = None

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        evidence.need("train")
        return self._prepare(evidence, np.arange(len(evidence.queries)))(evidence.popularity)

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float]:
        """Return an interval that accounts for the counts of the popularity."""
        return resample_counts(
            values,
            evidence.queries.users,
            count_by_user(evidence, None),
            partial(self._prepare, evidence),
            rng=evidence.rng(),
        )

    def _prepare(self, evidence: Evidence, rows: AnyArray) -> Callable[[FloatArray], FloatArray]:
        """Return a function from the popularity of each item to the value of these queries."""
        k = self.k or max(evidence.ranked.k, 1)
        listed = evidence.ranked.items[rows, :k] >= 0
        mark_expected = _prepare_baseline(evidence, rows, k)
        counted = self._mark_counted(evidence, np.ones_like(evidence.ranked.items[:, :k], bool))
        counted, n = counted[rows] & listed, listed.sum(axis=1)
        undefined = self._exclude(evidence, np.zeros(len(evidence.queries)))[rows]

        def evaluate(popularity: FloatArray) -> FloatArray:
            unexpected = (counted & ~mark_expected(popularity)).sum(axis=1)
            return divide(unexpected, n) + undefined

        return evaluate

    def _mark_counted(self, evidence: Evidence, unexpected: BoolArray) -> BoolArray:
        return unexpected

    def _exclude(self, evidence: Evidence, values: FloatArray) -> FloatArray:
        return values


class Unexpectedness(_BaselineMetric):
    """The share of each list that the popularity baseline would not have recommended.

        unexpectedness@k(u) = |{ i in L_u : i not in P_u }| / |L_u|

    L_u is the list of user u cut at k, P_u the k items with the most training interactions that
    the user has not had, as the model ``MostPop`` recommends them; of equally popular items those
    with the lower code. 0 is a list of the most popular items. Undefined for an empty list.

    Source:
        Murakami, Mori and Orihara, "Metrics for evaluating the serendipity of recommendation
        lists", JSAI 2007 (LNCS 2008); Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy",
        RecSys 2010, with MostPop as the primitive model.
    """

    direction: ClassVar[Direction] = "higher"


class Serendipity(_BaselineMetric):
    """The share of each list that is relevant and beyond the popularity baseline.

        serendipity@k(u) = |{ i in L_u : i not in P_u, i in R_u }| / |L_u|

    L_u is the list of user u cut at k, P_u the k items with the most training interactions that
    the user has not had, as the model ``MostPop`` recommends them; R_u are the user's test items.
    Measures of this name in RecTools and recommenders weight relevant items by popularity and
    rank, or by their distance from the history, instead of comparing with a baseline. Undefined
    for an empty list, and for a query without test items.

    Range:
        0 to 1; undefined for an empty list or a query without test items.

    Source:
        Ge, Delgado-Battenfeld and Jannach, "Beyond accuracy: evaluating recommender systems by
        coverage and serendipity", RecSys 2010, equation 4, where an item is useful if it is a test
        item; the primitive model is MostPop.
    """

    needs = frozenset({"lists", "train", "test"})
    direction: ClassVar[Direction] = "higher"

    def _mark_counted(self, evidence: Evidence, unexpected: BoolArray) -> BoolArray:
        return np.asarray(unexpected & evidence.hits[:, : unexpected.shape[1]])

    def _exclude(self, evidence: Evidence, values: FloatArray) -> FloatArray:
        return np.where(evidence.n_relevant > 0, values, np.nan)


def _prepare_baseline(
    evidence: Evidence, rows: AnyArray, k: int
) -> Callable[[FloatArray], BoolArray]:
    """Return a function from the popularity to the positions that MostPop recommends."""
    histories = build_history_matrix(evidence)[rows]
    lists = evidence.ranked.take(rows).truncate(k)
    items = np.where(evidence.in_catalogue[rows, :k], lists.items, -1)
    in_history = mark_contained(histories, lists)

    def mark_expected(popularity: FloatArray) -> BoolArray:
        n_items = popularity.size
        order = np.argsort(np.arange(n_items) - popularity.astype(np.int64) * n_items)
        rank = np.empty(n_items + 1, dtype=np.int64)
        rank[order], rank[-1] = np.arange(n_items), n_items  # not in the catalogue
        limits = _find_last_ranks(histories, rank[:-1], k)
        limits = np.minimum(limits, np.count_nonzero(popularity))
        return np.asarray((rank[items] < limits[:, None]) & ~in_history)

    return mark_expected


def _find_last_ranks(histories: Matrix, rank: AnyArray, k: int) -> AnyArray:
    """Return the number of ranks by popularity that hold k items outside each history."""
    from scipy.sparse import csr_array

    ranks = rank[histories.indices]
    high = np.flatnonzero(ranks < k + np.diff(histories.indptr).max(initial=0))
    cells = (ranks[high], ranks[high], np.searchsorted(high, histories.indptr))
    ranked = csr_array(cells, shape=histories.shape)
    ranked.sort_indices()
    n = np.diff(ranked.indptr)
    place = np.arange(ranked.nnz) - np.repeat(ranked.indptr[:-1], n)
    rows = np.repeat(np.arange(histories.shape[0]), n)
    precedes = ranked.indices - place < k
    return np.asarray(k + np.bincount(rows[precedes], minlength=histories.shape[0]))


def _read_odds(evidence: Evidence) -> Odds:
    """Return the odds of the picks; MissingEvidence where they are not known."""
    evidence.need("odds")
    return evidence.odds  # type: ignore[return-value]


def _rank_ideal(evidence: Evidence, k: int) -> Codes:
    """Return the ideal list of each query, ``int32[q, k]``: see ``rank_ideal_lists``."""
    candidates = mark_candidates(evidence)
    histories = build_history_matrix(evidence)
    return rank_ideal_lists(_read_odds(evidence), evidence.queries.users, histories, candidates, k)


@dataclass(frozen=True, kw_only=True)
class Homogenization(WholeSet):
    """The mean Jaccard index of the lists of two users, minus that of their ideal lists.

        H@k = 2 / (m (m - 1)) Σ_{u < v} ( J(L_u, L_v) - J(L*_u, L*_v) )
        J(A, B) = |A ∩ B| / |A ∪ B|

    L_u is the list of user u cut at k, and L*_u the ideal one: the k candidates that u is most
    likely to pick among those not in the history, known in a synthetic world. m is the number of
    users with both. Above 0 the lists are more alike than what users like, below 0 less. All pairs
    are counted: the time grows with the square of the number of users. Where all items are equally
    likely, ideal lists are ties in the order of the items, so the value means nothing. Undefined
    with fewer than two users.

    Its interval is that of the bootstrap over users of the linear part of this mean over pairs: a
    sample with users u_1 ... u_m has the value 2/m Σ_i h_{u_i} - H, where h_u is the mean
    over the pairs of u; with Student's t and m - 1 degrees of freedom.

    Args:
        k: How many ranks of each list are evaluated; by default the length of the lists.

    Range:
        -1 to 1; undefined with fewer than two users.

    Source:
        Chaney, Stewart and Engelhardt, "How algorithmic confounding in recommendation systems
        increases homogeneity and decreases utility", RecSys 2018, there of what users chose; here
        of the lists of all pairs of users. The linear part: Hoeffding,
        "A class of statistics with asymptotically normal distribution", Annals of Mathematical
        Statistics 1948.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "odds", "train"})
    direction: ClassVar[Direction] = "zero"

    k: Cutoff = None

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        from scipy.sparse import csr_array

        items = evidence.ranked.items[:, : self.k]
        ideal = _rank_ideal(evidence, items.shape[1])
        is_paired = (items >= 0).any(axis=1) & (ideal >= 0).any(axis=1)
        excess = measure_mean_jaccard(items[is_paired]) - measure_mean_jaccard(ideal[is_paired])
        if excess.size < 2:
            excess = excess[:0]
        mean = float(excess.mean()) if excess.size else np.nan

        def estimate(sums: AnyArray) -> FloatArray:
            return np.asarray(2.0 * sums[..., 0] / excess.size - mean)

        n_excluded = len(items) - excess.size
        counts, df = csr_array(excess[:, None]), max(excess.size - 1.0, 1.0)
        return Totals(counts, estimate, n_excluded=n_excluded, df=df)


@dataclass(frozen=True, kw_only=True)
class RelativeUtility(PerQuery):
    """The odds of a pick from a list, relative to those of a pick from the ideal list.

        U@k = Σ_{i in L_u} w_ui / Σ_{i in L*_u} w_ui

    w_ui are the odds that user u picks item i, known in a synthetic world; L_u is the list of u
    cut at k, and L*_u the ideal one: the k candidates with the highest odds that are not in the
    history. 1 is as good as ideal. Unlike nDCG it needs no test set. An item of the history, or
    outside the catalogue, counts 0. Where all items are equally likely every full list is ideal.
    Undefined for a query that is not a user, or without an ideal list.

    Args:
        k: How many ranks of each list are evaluated; by default the length of the lists.

    Range:
        0 to 1; undefined for a query that is not a user.

    Source:
        Chaney, Stewart and Engelhardt, "How algorithmic confounding in recommendation systems
        increases homogeneity and decreases utility", RecSys 2018, utility relative to ideal.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "odds", "train"})
    direction: ClassVar[Direction] = "higher"

    k: Cutoff = None

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        odds, users = _read_odds(evidence), evidence.queries.users
        lists = evidence.ranked.truncate(self.k or evidence.ranked.k)
        weights = weigh_lists(odds, users, lists.items)
        weights[mark_contained(build_history_matrix(evidence), lists)] = 0.0
        totals = weigh_lists(odds, users, _rank_ideal(evidence, lists.k)).sum(axis=1)
        return divide(weights.sum(axis=1), totals)
