"""Whether head and long tail are recommended with equal probability: PopREO and PopRSP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.popularity.item_popularity import build_history_matrix, build_list_matrix
from recbias.metrics.popularity.long_tail import LongTailMetric
from recbias.metrics.resampled_estimates import estimate_from_totals


class PopREO(LongTailMetric):
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
    unit = ""
    also_needs = frozenset({"test"})

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        from scipy.sparse import csr_array

        evidence.need("test")
        groups, relevant = _build_groups(evidence, self), evidence.relevant
        hits = build_list_matrix(evidence, self.k).multiply(relevant != 0).tocsr() @ groups
        n_relevant = _count_by_group(evidence, "test items", relevant, groups)
        counts = csr_array(np.hstack([hits, n_relevant]))
        return estimate_from_totals(
            evidence, counts, lambda sums: _compute_disparity(sums[..., :2], sums[..., 2:])
        )


class PopRSP(LongTailMetric):
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
    unit = ""
    also_needs = frozenset({"train"})

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        from scipy.sparse import csr_array

        groups = _build_groups(evidence, self)
        lists = build_list_matrix(evidence, self.k)
        recommended = _count_by_group(evidence, "items of the lists", lists, groups)
        histories = build_history_matrix(evidence)
        n_history = _count_by_group(evidence, "items of the histories", histories, groups)
        n_pairs = len(evidence.queries) * groups.sum(axis=0)

        def estimate(sums: AnyArray) -> FloatArray:
            return _compute_disparity(sums[..., :2], n_pairs - sums[..., 2:])

        counts = csr_array(np.hstack([recommended, n_history]))
        return estimate_from_totals(evidence, counts, estimate)


def _build_groups(evidence: Evidence, metric: LongTailMetric) -> FloatArray:
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
    """Return how many items of head and tail each row holds, ``float64[q, 2]``.

    Items of neither group are counted in a warning under ``label``.
    """
    n_excluded = int(np.count_nonzero(groups.sum(axis=1)[rows.indices] == 0))
    if n_excluded:
        message = "are not candidates of known popularity and are excluded"
        warn(f"{evidence.metric}: {n_excluded:,} {label} {message}")
    counts: FloatArray = rows @ groups
    return counts


def _compute_disparity(recommended: AnyArray, possible: AnyArray) -> FloatArray:
    """Return std / mean of the probabilities of two groups, ``(..., 2)`` to ``float64[...]``."""
    recommended, possible = np.broadcast_arrays(recommended, possible)
    undefined = np.full(recommended.shape, np.nan)
    shares = np.divide(recommended, possible, out=undefined, where=possible > 0)
    mean = shares.mean(axis=-1)
    undefined = np.full(mean.shape, np.nan)
    return np.asarray(np.divide(shares.std(axis=-1), mean, out=undefined, where=mean > 0))
