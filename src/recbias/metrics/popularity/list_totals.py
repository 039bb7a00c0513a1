"""Estimates from counts summed over all lists, with bootstrap samples of the queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.intervals import normal_interval


def estimate_from_totals(
    evidence: Evidence, counts: Matrix, estimate: Callable[[AnyArray], FloatArray]
) -> Sequence[Measurement]:
    """Return one estimate from the column sums of the counts, with a bootstrap interval.

    The bootstrap samples of the queries are the same for every model.

    Args:
        evidence: The number and seed of the bootstrap samples.
        counts: The counts of each query, CSR ``(q, c)``.
        estimate: From sums ``(..., c)`` to estimates ``float64[...]``.

    Returns:
        One measurement; NaN without a query or a column.
    """
    n_queries = counts.shape[0]
    value, replicates = np.nan, np.full(evidence.n_bootstrap, np.nan)
    if all(counts.shape):
        value = float(estimate(counts.sum(axis=0)))
        samples = resample_sums(counts, evidence.n_bootstrap, evidence.bootstrap_seed)
        replicates = np.concatenate([np.empty(0), *(estimate(sums) for sums in samples)])
    low, high = normal_interval(value, replicates)
    n = 0 if np.isnan(value) else n_queries
    return [
        Measurement(
            value=value,
            n=n,
            undefined=n_queries - n,
            ci_low=float(low),
            ci_high=float(high),
            replicates=replicates,
        )
    ]
