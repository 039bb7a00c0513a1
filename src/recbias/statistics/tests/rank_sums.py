"""The rank-sum test of two independent samples."""

from __future__ import annotations

import math

from recbias.core.arrays import FloatArray
from recbias.core.measurements.scores import Contrast


def compare_ranks(
    names: tuple[str, str], a: FloatArray, b: FloatArray, *, between: str
) -> Contrast:
    """Compare two samples by the Wilcoxon-Mann-Whitney rank-sum test.

        U = #{ (i, j): a_i > b_j } + #{ (i, j): a_i = b_j } / 2

    The two-sided p is from the normal approximation with correction for ties and continuity.
    The effect size is the rank-biserial correlation 2 U / (n_a n_b) - 1: 1 if every value of a is
    above every value of b. p is NaN if a sample has fewer than two values, and 1 if all values are
    equal.

    >>> import numpy as np
    >>> test = compare_ranks(("a", "b"), np.array([2.0, 3.0]), np.array([1.0, 1.0]), between="x")
    >>> test.statistic, test.effect_size
    (4.0, 1.0)

    Args:
        names: The names of the samples.
        a: The first sample, ``float64[n_a]``, without NaN.
        b: The second sample, ``float64[n_b]``.
        between: What the samples are: ``groups``, ``targets``, ``directions``.

    Source:
        Mann and Whitney, "On a test of whether one of two random variables is stochastically
        larger than the other", Annals of Mathematical Statistics 1947.
    """
    from scipy.stats import mannwhitneyu

    mean_a, mean_b = (float(side.mean()) if side.size else math.nan for side in (a, b))
    u = p = effect_size = math.nan
    if min(a.size, b.size) > 1:
        result = mannwhitneyu(a, b, alternative="two-sided", method="asymptotic")
        u = float(result.statistic)
        is_constant = a.min() == a.max() == b.min() == b.max()
        p = 1.0 if is_constant else float(result.pvalue)
        effect_size = 2.0 * u / (a.size * b.size) - 1.0
    return Contrast(
        between=between,
        a=names[0],
        b=names[1],
        test="rank_sum",
        n=a.size + b.size,
        mean_a=mean_a,
        mean_b=mean_b,
        difference=mean_a - mean_b,
        statistic=u,
        p=p,
        effect_size=effect_size,
    )
