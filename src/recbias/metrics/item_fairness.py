"""Fairness to individual items: how evenly the lists hold them, and exposure against relevance.

The corrected measures are rescaled to what lists of these lengths can reach. ``ItemCoverage``
(QF), ``Gini`` and ``Entropy`` are uncorrected forms of the same family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Interval

from recbias.core.dataset import AnyArray, FloatArray, Matrix, divide
from recbias.core.docstrings import InheritsSections
from recbias.core.evidence import Evidence
from recbias.core.measures import Direction
from recbias.kernels.sparse import build_rows
from recbias.metrics.base import Cutoff, PerQuery, Totals, WholeSet, mark_candidates
from recbias.metrics.popularity import CandidateMetric, build_candidate_matrix, locate_candidates
from recbias.statistics.inequality import (
    cover,
    cover_without_rows,
    entropy,
    entropy_without_rows,
    fair_share,
    gini,
    gini_without_rows,
    jain,
    jain_without_rows,
    make_even_counts,
    make_uneven_counts,
)

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

    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

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

    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

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

    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

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

    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

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
    The interval refers to the value expected of as many lists, of other users, and comes from the
    jackknife.

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
