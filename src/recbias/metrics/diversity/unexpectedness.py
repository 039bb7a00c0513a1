"""What the lists hold beyond the items that the popularity baseline recommends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence, mark_contained
from recbias.metrics.popularity.counted_popularity import count_by_user
from recbias.metrics.popularity.item_popularity import build_history_matrix
from recbias.statistics.bootstrap.counted_bootstrap import resample_counts


@dataclass(frozen=True, kw_only=True)
class _BaselineMetric(InheritsSections):
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
    unit: ClassVar[str] = "query"

    k: Annotated[int, Gt(0)] | None = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        evidence.need("train")
        values = self._prepare(evidence, np.arange(len(evidence.queries)))(evidence.popularity)
        measurement = evidence.measure_queries(values)
        low, high = resample_counts(
            values,
            evidence.queries.users,
            count_by_user(evidence, None),
            partial(self._prepare, evidence),
            rng=evidence.rng(),
        )
        return [replace(measurement, ci_low=low, ci_high=high, own_interval=True)]

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
            values = np.full(n.shape, np.nan)
            np.divide(unexpected, n, out=values, where=n > 0)
            return values + undefined

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
    """Return a function from the popularity to the positions that MostPop recommends.

    The positions are those of these queries that hold an item which MostPop recommends to the same
    query, ``bool[n, k]``.
    """
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
    """Return the number of ranks by popularity that hold k items outside each history.

    The item at rank h (from 0) of a sorted history has h - j others above it, j being its place in
    the history; it precedes the k-th other item if that is below k. As j is below the length of
    the history, lower ranks than those of k and the longest history do not.
    """
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
