"""Fairness to individual items that counts how many lists hold each item.

These measures do not depend on relevance. ``ItemCoverage`` (QF), ``Gini`` and ``Entropy`` are the
uncorrected forms of the same family; ``corrected_counts`` has the corrected ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.coverage import CandidateMetric, build_candidate_matrix
from recbias.metrics.resampled_estimates import estimate_from_totals
from recbias.numerics.item_shares import fair_share, jain
from recbias.numerics.sparse.deleted_rows import jain_without_rows


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
    without_rows = jain_without_rows

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the index of each row of counts, ``float64[...]``."""
        return jain(counts)


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

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        counts = build_candidate_matrix(evidence, self.k)
        return estimate_from_totals(evidence, counts, self.estimate)

    def estimate(self, counts: AnyArray) -> FloatArray:
        """Return the share of each row of counts, ``float64[...]``."""
        return fair_share(np.asarray(counts))
