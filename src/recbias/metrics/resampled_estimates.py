"""Estimates from all queries or responses together, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.statistics.bootstrap.joined_rows import join_rows
from recbias.statistics.bootstrap.linear_bootstrap import resample_linear_part, widen_samples
from recbias.statistics.bootstrap.query_bootstrap import resample_sums
from recbias.statistics.bootstrap.sample_interval import compute_sample_interval


def estimate_from_totals(
    evidence: Evidence,
    counts: Matrix,
    estimate: Callable[[AnyArray], FloatArray],
    *,
    n_excluded: int = 0,
    df: float = math.nan,
) -> list[Measurement]:
    """Return one estimate from the column sums of the counts, with a bootstrap interval.

    The bootstrap samples of the rows are the same for every model.

    Args:
        evidence: The number and seed of the bootstrap samples.
        counts: The counts of each query or review, CSR ``(q, c)``.
        estimate: From sums ``(..., c)`` to estimates ``float64[...]``.
        n_excluded: The number of queries or reviews without a row, counted as undefined.
        df: Degrees of freedom of the standard error; NaN for the normal distribution.

    Returns:
        One measurement; NaN without a row or a column.
    """
    value, replicates = np.nan, np.full(evidence.n_bootstrap, np.nan)
    if all(counts.shape):
        value = float(estimate(counts.sum(axis=0)))
        replicates = _resample(evidence, counts, estimate, evidence.rng())
    n = counts.shape[0]
    return [build_estimate(value, replicates, n, n + n_excluded, df=df)]


def estimate_by_jackknife(
    evidence: Evidence,
    counts: Matrix,
    estimate: Callable[[AnyArray], FloatArray],
    leave_out: Callable[[Matrix], FloatArray] | None = None,
    *,
    is_step: bool = False,
) -> list[Measurement]:
    """Return one estimate from the column sums of the counts, with a jackknife interval.

    Its bootstrap samples have the variance of the jackknife (``resample_linear_part``), and are of
    the same rows for every model; the interval is Student's.

    Args:
        evidence: The number and seed of the bootstrap samples.
        counts: The counts of each query, CSR ``(q, c)``.
        estimate: From sums ``(..., c)`` to estimates ``float64[...]``.
        leave_out: The estimate without each row of a matrix of 0 and 1, ``float64[q]``.
        is_step: Whether the estimate counts what is above 0, which no single row changes if
            everything is in several rows: the samples are then as wide as resampled estimates.

    Returns:
        One measurement; NaN without a row or a column, no interval for a single row.
    """
    value, df = np.nan, np.nan
    replicates = np.full(evidence.n_bootstrap, np.nan)
    if all(counts.shape):
        value = float(estimate(counts.sum(axis=0)))
        rng = evidence.rng()
        joined = join_rows(counts, rng)
        replicates, df = resample_linear_part(
            joined, estimate, evidence.n_bootstrap, deepcopy(rng), leave_out=leave_out
        )
        if is_step:
            samples = _resample(evidence, joined, estimate, rng)
            replicates = widen_samples(value, replicates, samples)
    n = counts.shape[0]
    return [build_estimate(value, replicates, n, n, df=df)]


def _resample(
    evidence: Evidence,
    counts: Matrix,
    estimate: Callable[[AnyArray], FloatArray],
    rng: np.random.Generator,
) -> FloatArray:
    samples = resample_sums(counts, evidence.n_bootstrap, rng)
    return np.concatenate([np.empty(0), *(estimate(sums) for sums in samples)])


def build_estimate(
    value: float, replicates: FloatArray, n: int, total: int, *, df: float = math.nan
) -> Measurement:
    """Return an estimate with the interval of its bootstrap samples.

    Args:
        value: The estimate; NaN is undefined.
        replicates: Its value on each bootstrap sample, ``float64[b]``.
        n: The number of units that determine it.
        total: The number of all units.
        df: Degrees of freedom of their standard deviation, as in ``Measurement``.
    """
    low, high = compute_sample_interval(value, replicates, df=df)
    n = 0 if np.isnan(value) else n
    return Measurement(
        value=value,
        n=n,
        undefined=total - n,
        ci_low=low,
        ci_high=high,
        replicates=replicates,
        df=df,
    )
