"""Whether items get attention in proportion to their relevance, over all lists together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.exposure.attention import scale_rows
from recbias.metrics.exposure.browsing import mark_candidates, select_relevant
from recbias.metrics.exposure.exposure_metric import ExposureMetric
from recbias.metrics.resampled_estimates import estimate_from_totals
from recbias.numerics.sparse.columns import select_columns


@dataclass(frozen=True, kw_only=True)
class AmortizedAttention(ExposureMetric):
    """Inequity of amortized attention: attention to each item against its relevance.

        IAA = (1 / n) Σ_i | (1 / |Q|) Σ_q (a_qi - r_qi) |

    a_qi is the share of item i in the exposure of the list of query q, r_qi = 1 / |R_q| if it is
    one of the relevant items R_q (the test items that may be recommended), else 0, and n the
    number of items that may be recommended. 0 is attention in proportion to relevance over all
    queries, although no single list is fair. A list without an item gives no attention, and
    attention to items that may not be recommended is not counted. Queries without a relevant item
    are excluded and counted. It is above 0 by chance, more so with few queries: compare models on
    the same queries only. The code of Rampisela et al. (WWW 2025) takes the mean of the absolute
    differences within each list instead, which is not amortized. Undefined without a query with a
    relevant item.

    Range:
        0 to 1, at most 2 / n; undefined without a query with a relevant item.

    Source:
        Biega, Gummadi and Weikum, "Equity of attention: amortizing individual fairness in
        rankings", SIGIR 2018, unfairness, there summed over the items and lists: here divided by
        their numbers, so that it can be compared between samples.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str] = ""

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        relevant, candidates = select_relevant(evidence), mark_candidates(evidence)
        queries = np.flatnonzero(np.diff(relevant.indptr) > 0)
        attention = scale_rows(self.expose_items(evidence))[:, : candidates.size]
        excess = select_columns(attention - scale_rows(relevant), np.flatnonzero(candidates))
        excess = excess if queries.size == excess.shape[0] else excess[queries]

        def estimate(sums: AnyArray) -> FloatArray:
            return np.asarray(np.abs(sums).mean(axis=-1) / max(queries.size, 1))

        n_excluded = len(evidence.queries) - queries.size
        return estimate_from_totals(evidence, excess, estimate, n_excluded=n_excluded)
