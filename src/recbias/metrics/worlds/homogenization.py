"""How much more alike the lists of users are than ideal lists would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.item_popularity import Cutoff
from recbias.metrics.resampled_estimates import estimate_from_totals
from recbias.metrics.worlds.ideal_evidence import rank_ideal
from recbias.numerics.list_overlap import measure_mean_jaccard


@dataclass(frozen=True, kw_only=True)
class Homogenization:
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
    unit: ClassVar[str] = ""

    k: Cutoff = None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        from scipy.sparse import csr_array

        items = evidence.ranked.items[:, : self.k]
        ideal = rank_ideal(evidence, items.shape[1])
        is_paired = (items >= 0).any(axis=1) & (ideal >= 0).any(axis=1)
        excess = measure_mean_jaccard(items[is_paired]) - measure_mean_jaccard(ideal[is_paired])
        if excess.size < 2:
            excess = excess[:0]
        mean = float(excess.mean()) if excess.size else np.nan

        def estimate(sums: AnyArray) -> FloatArray:
            return np.asarray(2.0 * sums[..., 0] / excess.size - mean)

        n_excluded = len(items) - excess.size
        counts, df = csr_array(excess[:, None]), max(excess.size - 1.0, 1.0)
        return estimate_from_totals(evidence, counts, estimate, n_excluded=n_excluded, df=df)
