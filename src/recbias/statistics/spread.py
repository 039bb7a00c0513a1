"""Several groups: the difference between the largest and the smallest mean, and a trend."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, FloatArray
from recbias.core.measures import Contrast
from recbias.statistics.paired import ROUNDING

_Pairs: TypeAlias = tuple[AnyArray, AnyArray]
"""The first and the second mean of some differences."""

NAME = "gap_change"
"""The test of the change of a gap of several groups."""

_CELLS = 2**21
"""Differences of samples held in memory at once."""

_MOST_SAMPLES, _FEWEST_SAMPLES = 10_000, 1_000

_MOST_MEANS = 200
"""The largest difference of more means has no interval: there are too many pairs."""

MOST_COMPARED = 40
"""Models are not compared by the gap of more groups."""

_REACH = 3.0
"""How many standard errors a difference may be below the largest to be a contender."""


def estimate_spread(
    means: FloatArray, covariance: FloatArray, sizes: AnyArray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the 95% interval of the largest difference of means, and its degrees of freedom.

    The estimand is θ = max_g μ_g - min_g μ_g, of the true means. Its estimate R = max m - min m is
    too large by chance, the more so the more groups there are and the less they differ, so that
    R ± t · se would exclude a true 0 in nearly every run. With the differences and errors

        d_ab = m_a - m_b,    s_ab² = v_aa + v_bb - 2 v_ab,    Satterthwaite's df_ab

    of all ordered pairs, the interval is over the contenders S, which are not more than three
    standard errors below the largest difference R:

        low  = max over S of d_ab - t(Φ(c); df_ab) s_ab, at least 0
        high = max over S of d_ab + t(0.975; df_ab) s_ab

    c is such that, if the contenders differ equally, low is above them or high below them in 5%
    of samples of normal values. So the interval is Welch's where two groups are far apart and all
    others between them, and a simultaneous one, which excludes 0 as the studentised range does,
    where all groups may be equal. It covers 93 to 99% (``studies``): more than
    95% where several groups are within three standard errors of the extremes. All are NaN if a
    group has one value, if two means have no standard error, or for more than 200 groups.

    Args:
        means: The mean of each group.
        covariance: The covariance matrix v of the means.
        sizes: The number of values of each group.
        rng: Of the samples.

    Source:
        Games and Howell, "Pairwise multiple comparison procedures with unequal n's and/or
        variances", J. Educ. Stat. 1976; the contenders as in Chernozhukov, Lee and Rosen,
        "Intersection bounds: estimation and inference", Econometrica 2013.
    """
    from scipy.special import ndtr, stdtrit

    undefined = math.nan, math.nan, math.nan
    if means.size > _MOST_MEANS or sizes.min() < 2:
        return undefined
    a, b = np.nonzero(~np.eye(means.size, dtype=bool))
    if (_measure_errors(covariance, (a, b)) <= ROUNDING * np.abs(means).max()).any():
        return undefined
    a, b = pairs = find_contenders(means, covariance)
    d, error = means[a] - means[b], _measure_errors(covariance, pairs)
    variance = np.diag(covariance)
    df = error**4 / np.maximum(
        variance[a] ** 2 / (sizes[a] - 1) + variance[b] ** 2 / (sizes[b] - 1), 1e-300
    )
    n = _count_samples(a.size)
    largest = _sample_largest(covariance, sizes, pairs, df, rng=rng, n_samples=n)
    limit = 1.959964
    too_high = min(float((largest < -limit).mean()), 0.025)
    c = max(float(np.quantile(largest, 0.95 + too_high)), limit)
    low = float((d - stdtrit(df, ndtr(c)) * error).max())
    high = float((d + stdtrit(df, 0.975) * error).max())
    return max(low, 0.0), high, float(df[d.argmax()])


def find_df(means: FloatArray, variances: FloatArray, sizes: AnyArray) -> float:
    """Return Satterthwaite's degrees of freedom of the largest difference of independent means."""
    ends = [int(means.argmax()), int(means.argmin())]
    parts = variances[ends]
    return float(parts.sum() ** 2 / max((parts**2 / (sizes[ends] - 1)).sum(), 1e-300))


def find_contenders(means: FloatArray, covariance: FloatArray) -> _Pairs:
    """Return the ordered pairs whose difference may be the largest."""
    a, b = np.nonzero(~np.eye(means.size, dtype=bool))
    d = means[a] - means[b]
    top = int(d.argmax())
    with_top = covariance[a[top]] - covariance[b[top]]
    squares = _measure_errors(covariance, (a, b)) ** 2
    variance = squares[top] + squares - 2.0 * (with_top[a] - with_top[b])
    kept = d[top] - d <= _REACH * np.sqrt(np.maximum(variance, 0.0))
    kept[top] = True
    return a[kept], b[kept]


def compare_spreads(
    means: FloatArray, covariance: FloatArray, df: float, alpha: float, rng: np.random.Generator
) -> dict[str, float]:
    """Compare the largest differences of the same groups in two models, over the same units.

        δ = θ_a - θ_b = max over p of min over q of δ_p - δ_q

    where p are the pairs of groups in model a and q those in b, and δ_p their true differences. So
    simultaneous bounds of all δ_p - δ_q between contenders (``estimate_spread``), D_pq ± c se_pq,
    give bounds of δ:

        low  = max over p of min over q of D_pq - c_low se_pq
        high = max over p of min over q of D_pq + c_high se_pq

    low can exceed δ only if D_pq - c se_pq is above δ_p - δ_q for the pair q that has the largest
    true difference and some p. So c_low is a quantile of the largest deviation over p with one
    q, the largest observed; c_high that over q with one p. Where one pair of groups leads in both
    models this is the test of its difference of differences; otherwise it is conservative. Both
    gaps are too large by chance, and neither's excess is counted as a change. p is two-sided, and
    below alpha if the interval excludes 0.

    Args:
        means: The mean of each group in both models, ``float64[2, g]``.
        covariance: That of these means, ``float64[2 g, 2 g]``, first those of model a.
        df: Degrees of freedom.
        alpha: The level of the test; the interval has 1 - alpha.
        rng: Of the samples.
    """
    from scipy.special import stdtr, stdtrit

    size = means.shape[1]
    if means[0].tolist() < means[1].tolist():  # the samples are the same, whichever model is a
        covariance = np.roll(covariance, size, (0, 1))
        test = compare_spreads(means[::-1], covariance, df, alpha, rng)
        ends = {"ci_low": -test["ci_high"], "ci_high": -test["ci_low"]}
        return test | ends | {name: -test[name] for name in ("difference", "statistic")}
    blocks = covariance[:size, :size], covariance[size:, size:]
    (a, b), (c, d) = (find_contenders(m, v) for m, v in zip(means, blocks, strict=True))
    first, second = means[0, a] - means[0, b], means[1, c] - means[1, d]
    cross = covariance[:size, size:][np.ix_([*a, *b], [*c, *d])]
    shared = cross[: a.size] - cross[a.size :]
    shared = shared[:, : c.size] - shared[:, c.size :]
    squares = [_measure_errors(v, p) ** 2 for v, p in zip(blocks, ((a, b), (c, d)), strict=True)]
    error = np.sqrt(np.maximum(squares[0][:, None] + squares[1] - 2.0 * shared, 0.0))
    error = np.maximum(error, ROUNDING * np.abs(means).max() + 1e-300)
    change = first[:, None] - second
    leads = int(first.argmax()), int(second.argmax())
    n_samples = _count_samples(max(a.size, c.size))
    draws = rng.multivariate_normal(np.zeros(2 * size), covariance, n_samples, method="eigh")
    draws /= np.sqrt(rng.chisquare(df, (n_samples, 1)) / df)
    z_first, z_second = draws[:, a] - draws[:, b], draws[:, size + c] - draws[:, size + d]
    above = ((z_first - z_second[:, leads[1], None]) / error[:, leads[1]]).max(axis=1)
    below = ((z_second - z_first[:, leads[0], None]) / error[leads[0]]).max(axis=1)
    least = float(stdtrit(df, 1.0 - alpha / 2.0))
    limits = [max(float(np.quantile(side, 1.0 - alpha / 2.0)), least) for side in (above, below)]
    difference = float(change[leads])
    side, n = (above, a.size) if difference > 0 else (below, c.size)
    ratios = change / error
    score = ratios.min(axis=1).max() if difference > 0 else -ratios.max(axis=0).min()
    # where few samples are as far, the sum over the contenders is the better bound
    tail = min(max(float((side >= score).mean()), 1.0 / side.size), n * stdtr(df, -score))
    return {
        "difference": difference,
        "ci_low": float((change - limits[0] * error).min(axis=1).max()),
        "ci_high": float((change + limits[1] * error).min(axis=1).max()),
        "statistic": math.copysign(score, difference),
        "df": df,
        "p": min(2.0 * float(tail), 1.0) if difference else 1.0,
    }


def _count_samples(n_pairs: int) -> int:
    return int(np.clip(2 * _CELLS // n_pairs, _FEWEST_SAMPLES, _MOST_SAMPLES))


def _measure_errors(covariance: FloatArray, pairs: _Pairs) -> FloatArray:
    """Return the standard error of each difference."""
    a, b = pairs
    variance = np.diag(covariance)
    return np.sqrt(np.maximum(variance[a] + variance[b] - 2.0 * covariance[a, b], 0.0))


def _sample_largest(
    covariance: FloatArray,
    sizes: AnyArray,
    pairs: _Pairs,
    df: FloatArray,
    *,
    rng: np.random.Generator,
    n_samples: int,
) -> FloatArray:
    """Return the largest deviation of the pairs in samples of normal values, as normal scores.

    A deviation is (z_a - z_b) / s*_ab, with the sampled means z and variances; Student's t is
    turned into a normal score by Wallace's approximation.
    """
    variance = np.diag(covariance)
    means = rng.multivariate_normal(np.zeros(sizes.size), covariance, n_samples, method="eigh")
    ratios = rng.chisquare(sizes - 1, (n_samples, sizes.size)) / (sizes - 1)
    scales, (a, b) = np.sqrt(ratios), pairs
    factor = (8.0 * df + 1.0) / (8.0 * df + 3.0)
    step, largest = max(_CELLS // (4 * a.size), 1), np.empty(n_samples)
    for start in range(0, n_samples, step):
        rows = slice(start, start + step)
        z, scale, v = means[rows], scales[rows], ratios[rows] * variance
        squares = v[:, a] + v[:, b] - 2.0 * covariance[a, b] * scale[:, a] * scale[:, b]
        t = (z[:, a] - z[:, b]) / np.sqrt(np.maximum(squares, 1e-300))
        scores = np.sign(t) * factor * np.sqrt(df * np.log1p(t**2 / df))
        largest[rows] = scores.max(axis=1)
    return largest


TREND = "jonckheere_terpstra"

_MOST_ARRANGEMENTS = 1_000_000
"""The number of divisions of the values into groups up to which p is exact."""


def compare_trend(names: tuple[str, ...], values: FloatArray, codes: AnyArray) -> Contrast:
    """Test whether values rise or fall with the order of groups, by Jonckheere and Terpstra.

        J = Σ_{g < h} #{ (i, j): x_i < x_j, i in g, j in h },    an equal pair counts 1/2
        E = (N² - Σ n_g²) / 4
        V = [ N (N-1) (2N+5) - Σ n_g (n_g-1) (2n_g+5) - Σ t (t-1) (2t+5) ] / 72
            + Σ n_g (n_g-1) (n_g-2) · Σ t (t-1) (t-2) / (36 N (N-1) (N-2))
            + Σ n_g (n_g-1) · Σ t (t-1) / (8 N (N-1)),    t the numbers of equal values

    The statistic is z = (J - E) / √V. p is two-sided: exact, the share of all divisions of the
    values into groups of these sizes with |J - E| at least as large, where there are at most a
    million of them, else 2 Φ(-|z|). The effect size is Somers' D = J / (2 E) · 2 - 1, the share of
    pairs of units of different groups that rise minus the share that fall: -1 to 1. Ranks are
    compared, so no distribution is assumed, but groups of equal means and other shapes may have a
    trend in ranks. The sides are the last and the first group with values, and ``difference``
    that of their means. p is NaN with fewer than two groups or if all values are equal.

    >>> codes = np.repeat([0, 1, 2], 2)
    >>> test = compare_trend(("a", "b", "c"), np.array([1.0, 2, 3, 4, 5, 6]), codes)
    >>> round(test.p, 4), test.effect_size  # 2 of the 90 divisions are as far from E
    (0.0222, 1.0)

    Args:
        names: The groups in their order.
        values: The value of each unit; NaN if undefined.
        codes: The group of each unit.

    Source:
        Jonckheere, "A distribution-free k-sample test against ordered alternatives", Biometrika
        1954; Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 2014, section 6.2.
    """
    from scipy.special import gammaln, ndtr

    defined = ~np.isnan(values)
    values, codes = values[defined], codes[defined]
    present, sizes = np.unique(codes, return_counts=True)
    ties = np.unique(values, return_counts=True)[1]
    z = p = effect = math.nan
    if present.size > 1 and ties.size > 1:
        rise = _count_rise(values, codes)
        z = rise / 2 / math.sqrt(_compute_variance(sizes.astype(float), ties.astype(float)))
        effect = rise / ((codes.size**2 - int((sizes**2).sum())) // 2)
        logarithm = gammaln(sizes.sum() + 1) - gammaln(sizes + 1).sum()  # of all divisions
        exact = logarithm <= math.log(_MOST_ARRANGEMENTS)
        p = _permute(values, codes, rise) if exact else float(2.0 * ndtr(-abs(z)))
    ends = [int(present[at]) for at in (-1, 0)] if present.size else [-1, 0]
    means = [values[codes == end].mean() if present.size else math.nan for end in ends]
    others = {"test": TREND, "n": codes.size, "statistic": z, "p": p, "effect_size": effect}
    return Contrast.of_means("groups", [names[end] for end in ends], means, **others)


def _count_rise(values: FloatArray, codes: AnyArray) -> int:
    """Return 2 (J - E): the pairs of different groups that rise minus those that fall."""
    from scipy.stats import kendalltau

    total = codes.size * (codes.size - 1) / 2
    ties = [np.unique(column, return_counts=True)[1] for column in (values, codes)]
    untied = [total - float((n * (n - 1.0) / 2).sum()) for n in ties]
    tau = kendalltau(codes, values, method="asymptotic").statistic
    return round(float(tau) * math.sqrt(untied[0]) * math.sqrt(untied[1]))


def _compute_variance(n: FloatArray, t: FloatArray) -> float:
    """Return V for groups of n and ties of t units."""
    total = float(n.sum())
    pairs = [float((x * (x - 1)).sum()) for x in (n, t)]
    triples = [float((x * (x - 1) * (x - 2)).sum()) for x in (n, t)]
    spread = [float((x * (x - 1) * (2 * x + 5)).sum()) for x in (np.array([total]), n, t)]
    variance = (spread[0] - spread[1] - spread[2]) / 72
    variance += pairs[0] * pairs[1] / (8 * total * (total - 1))
    if total > 2:
        variance += triples[0] * triples[1] / (36 * total * (total - 1) * (total - 2))
    return variance


def _permute(values: FloatArray, codes: AnyArray, rise: int) -> float:
    """Return the share of the divisions that rise or fall at least as much.

    Values are placed in ascending order. A state is the number of units that each group has; for
    each state the number of divisions by their rise is kept.
    """
    labels, sizes = np.unique(codes, return_counts=True)
    ways = {(0,) * labels.size: Counter({0: 1})}
    for n_tied in np.unique(values, return_counts=True)[1].tolist():
        following: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for state, counts in ways.items():
            for placed, n_ways in _place(n_tied, [*(sizes - np.array(state))]):
                # of each new unit: lower ones in groups before it rise, in groups after it fall
                step = sum(
                    k * (sum(state[:at]) - sum(state[at + 1 :])) for at, k in enumerate(placed)
                )
                target = following[tuple(np.add(state, placed).tolist())]
                for value, count in counts.items():
                    target[value + step] += count * n_ways
        ways = following
    (totals,) = ways.values()
    extreme = sum(count for value, count in totals.items() if abs(value) >= abs(rise))
    return extreme / sum(totals.values())


def _place(n: int, room: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield each way to place n equal units into groups, and how many divisions it stands for."""
    if len(room) == 1:
        if n <= room[0]:
            yield (n,), 1
        return
    for k in range(min(n, int(room[0])) + 1):
        for rest, ways in _place(n - k, room[1:]):
            yield (k, *rest), math.comb(n, k) * ways
