"""Fairness to individual items, rescaled to what lists of these lengths can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.coverage import CandidateMetric, build_candidate_matrix
from recbias.metrics.resampled_estimates import estimate_by_jackknife, estimate_from_totals
from recbias.numerics.inequality import entropy, gini
from recbias.numerics.item_shares import (
    cover,
    fair_share,
    jain,
    make_even_counts,
    make_uneven_counts,
)
from recbias.numerics.sparse.columns import join_columns
from recbias.numerics.sparse.deleted_rows import (
    cover_without_rows,
    entropy_without_rows,
    gini_without_rows,
    jain_without_rows,
)

ROUNDING = 1e-12
"""A range of values below this is a rounding error: the measure cannot vary."""


class CorrectedMetric(CandidateMetric):
    """A measure of the counts of the candidates, rescaled to its reachable range.

    Source:
        Rampisela, Maistro, Ruotsalo and Lioma, "Evaluation measures of individual item fairness
        for recommender systems: a critical study", ACM TORS 2024.
    """

    score: ClassVar[Callable[[AnyArray], FloatArray]]

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        counts, both = self._build_counts(evidence)
        n = counts.shape[1]
        return estimate_by_jackknife(
            evidence,
            both,
            lambda sums: self._rescale_sums(np.asarray(sums), n),
            lambda rows: self._leave_out(rows, n),
            is_step=self.is_step,
        )

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the measure that is rescaled, for each row of counts."""
        return np.asarray(type(self).score(counts))

    def _build_counts(self, evidence: Evidence) -> tuple[Matrix, Matrix]:
        """Return the candidates of each list; and these with the ranks that each list reaches.

        Without a candidate, there are no columns.
        """
        from scipy.sparse import csr_array

        counts = build_candidate_matrix(evidence, self.k)
        if not counts.shape[1]:
            return counts, counts
        starts, n_ranks = counts.indptr, evidence.ranked.items[:, : self.k].shape[1]
        ranks = np.arange(counts.nnz, dtype=starts.dtype) - np.repeat(starts[:-1], np.diff(starts))
        shape = (counts.shape[0], max(n_ranks, 1))
        return counts, join_columns(counts, csr_array((counts.data, ranks, starts), shape=shape))

    def _rescale_sums(self, sums: AnyArray, n: int) -> FloatArray:
        """Return the measure of counts of n candidates, followed by those of reached ranks."""
        return self._rescale(self.estimate(sums[..., :n]), sums[..., n:], n)

    def _leave_out(self, rows: Matrix, n: int) -> FloatArray:
        """Return the measure without each list."""
        lengths = rows[:, n:]
        left = np.asarray(lengths.sum(axis=0)).ravel() - lengths.toarray()
        return self._rescale(type(self).without_rows(rows[:, :n]), left, n)

    def _rescale(self, scores: FloatArray, lengths: AnyArray, n: int) -> FloatArray:
        """Return scores rescaled so that 0 is the value of the least even lists, 1 the most.

        ``lengths`` are the numbers of lists with at least 1, 2, ... candidates, n that of
        candidates.
        """
        distinct, inverse = np.unique(np.atleast_2d(lengths), axis=0, return_inverse=True)
        worst = self.estimate(make_uneven_counts(distinct, n))[inverse.ravel()]
        best = self.estimate(make_even_counts(distinct.sum(axis=1), n))[inverse.ravel()]
        span = best - worst
        excess = np.atleast_1d(scores) - worst
        undefined = np.full(span.shape, np.nan)
        share = np.divide(excess, span, out=undefined, where=np.abs(span) > ROUNDING)
        return np.asarray(self._orient(share).reshape(np.shape(scores)))

    def _orient(self, share: FloatArray) -> FloatArray:
        return share


class CorrectedJain(CorrectedMetric):
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


class CorrectedQF(CorrectedMetric):
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


class CorrectedEntropy(CorrectedMetric):
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


class CorrectedGini(CorrectedMetric):
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


class CorrectedFSat(CorrectedMetric):
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

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        counts, both = self._build_counts(evidence)
        n = counts.shape[1]
        return estimate_from_totals(
            evidence, both, lambda sums: self._rescale_sums(np.asarray(sums), n)
        )

    def _rescale(self, scores: FloatArray, lengths: AnyArray, n: int) -> FloatArray:
        worst = np.count_nonzero(lengths, axis=-1) / n
        undefined = np.full(worst.shape, np.nan)
        return np.asarray(np.divide(scores - worst, 1 - worst, out=undefined, where=worst < 1))
