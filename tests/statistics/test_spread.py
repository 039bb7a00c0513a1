from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.spread import (
    compare_spreads,
    compare_trend,
    estimate_spread,
    find_contenders,
    find_df,
)


def make_rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_of_two_groups_far_apart_it_is_welchs_interval(rng: np.random.Generator) -> None:
    samples = [rng.normal(mean, 1.0, n) for mean, n in ((0.0, 12), (30.0, 20), (15.0, 9))]
    means = np.array([sample.mean() for sample in samples])
    variances = np.array([sample.var(ddof=1) / sample.size for sample in samples])
    sizes = np.array([12, 20, 9])
    low, high, df = estimate_spread(means, np.diag(variances), sizes, make_rng())
    test = stats.ttest_ind(samples[1], samples[0], equal_var=False)
    expected = test.confidence_interval()
    assert (low, high) == pytest.approx((expected.low, expected.high), rel=2e-3)
    assert df == pytest.approx(test.df)
    assert find_df(means, variances, sizes) == pytest.approx(test.df)


def test_of_groups_that_may_be_equal_it_excludes_0_as_the_studentised_range_does() -> None:
    """The limit of R / se, for 4 groups of 1,000: q(0.95; 4) / √2 of the pair's error."""
    limit = stats.studentized_range.ppf(0.95, 4, 3996) / math.sqrt(2.0)
    for factor, is_excluded in ((0.97, False), (1.03, True)):
        means = np.array([0.0, 0.5, 0.5, 1.0]) * factor * limit * math.sqrt(2e-4)
        low, high, _ = estimate_spread(means, 1e-4 * np.eye(4), np.full(4, 1000), make_rng())
        assert (low > 0.0) is is_excluded
        assert low <= np.ptp(means) <= high


def test_contenders_are_the_pairs_near_the_largest() -> None:
    # errors of 0.1 each; the differences 1.0 and 0.9 are near each other, those with 0.5 are not
    a, b = find_contenders(np.array([0.0, 0.1, 0.5, 1.0]), 1e-2 * 0.25 * np.eye(4))
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(3, 0), (3, 1)]


@pytest.mark.parametrize(
    ("variances", "sizes"),
    [([0.1, 0.1, math.nan], [5, 5, 1]), ([0.1, 0.0, 0.0], [5, 5, 5]), ([0.1] * 201, [5] * 201)],
)
def test_without_errors_it_is_undefined(variances: list[float], sizes: list[int]) -> None:
    means = np.arange(len(sizes)) / len(sizes)
    ends = estimate_spread(means, np.diag(variances), np.array(sizes), make_rng())
    assert all(map(math.isnan, ends))


def join(parts: FloatArray) -> FloatArray:
    """The covariance of the means of both models, from ``parts[2, 2, g]``."""
    return np.block([[np.diag(part) for part in row] for row in parts])


def test_of_one_pair_that_leads_in_both_models_it_is_the_difference_of_differences() -> None:
    # 0 -> 10 in a and 0 -> 9 in b: 1 ± t se, se² = Σ of (v_a + v_b - 2 c) over the two groups
    means = np.array([[0.0, 5.0, 10.0], [0.0, 5.0, 9.0]])
    parts = np.empty((2, 2, 3))
    parts[0, 0], parts[1, 1], parts[0, 1], parts[1, 0] = 0.04, 0.09, 0.03, 0.03
    test = compare_spreads(means, join(parts), 40.0, 0.05, make_rng())
    error = math.sqrt(2 * (0.04 + 0.09 - 0.06))
    half = stats.t.ppf(0.975, 40) * error
    assert test["difference"] == pytest.approx(1.0)
    assert (test["ci_low"], test["ci_high"]) == pytest.approx((1 - half, 1 + half), rel=0.05)
    assert test["p"] == pytest.approx(2 * stats.t.sf(1 / error, 40), rel=0.1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_change_from_b_to_a_is_that_from_a_to_b_with_the_other_sign(seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, factors = rng.normal(size=(2, 4)), rng.normal(size=(8, 8))
    covariance = 0.05 * factors @ factors.T
    ab = compare_spreads(means, covariance, 30.0, 0.05, make_rng())
    ba = compare_spreads(means[::-1], np.roll(covariance, 4, (0, 1)), 30.0, 0.05, make_rng())
    assert (ba["ci_low"], ba["ci_high"]) == (-ab["ci_high"], -ab["ci_low"])
    assert (ba["difference"], ba["statistic"]) == (-ab["difference"], -ab["statistic"])
    assert ba["p"] == ab["p"]


@pytest.mark.slow  # many samples
@pytest.mark.parametrize("n_groups", [3, 6])
def test_the_interval_of_equal_groups_holds_0_in_95_of_100_worlds(n_groups: int) -> None:
    rng, sizes = np.random.default_rng(1), np.full(n_groups, 20)
    held = 0
    for _ in range(800):
        values = rng.exponential(1.0, (n_groups, 20))
        covariance = np.diag(values.var(axis=1, ddof=1) / 20)
        held += estimate_spread(values.mean(axis=1), covariance, sizes, rng)[0] == 0.0
    assert 0.93 <= held / 800 <= 0.975


HUNDAL = ([40, 35, 38, 43, 44, 41], [38, 40, 47, 44, 40, 42], [48, 40, 45, 43, 46, 44])
"""Pieces processed by workers with no, rough and accurate information about their output."""


def code(sizes: list[int]) -> AnyArray:
    return np.repeat(np.arange(len(sizes)), sizes)


def test_published_numbers() -> None:
    """Hollander, Wolfe and Chicken, 2014, example 6.2; R's DescTools has the same one-sided p."""
    test = compare_trend(("no", "rough", "accurate"), np.concatenate(HUNDAL) * 1.0, code([6] * 3))
    j = (test.effect_size + 1.0) / 2.0 * 108  # of 3 x 36 pairs
    assert j == pytest.approx(79.0)
    assert stats.norm.sf(test.statistic) == pytest.approx(0.0207, abs=5e-5)
    assert test.p == pytest.approx(2 * stats.norm.sf(test.statistic))
    assert (test.a, test.b, test.n) == ("accurate", "no", 18)
    assert test.difference == pytest.approx(np.mean(HUNDAL[2]) - np.mean(HUNDAL[0]))


def count_rise(values: FloatArray, codes: AnyArray) -> float:
    signs = np.sign(values[None, :] - values[:, None])
    return float(signs[codes[:, None] < codes[None, :]].sum())


@pytest.mark.parametrize("sizes", [[2, 3, 2], [3, 3], [1, 2, 3], [2, 2, 2, 1]])
@pytest.mark.parametrize("n_values", [2, 3, 100])
def test_small_groups_have_the_p_of_all_permutations(
    sizes: list[int], n_values: int, rng: np.random.Generator
) -> None:
    codes = code(sizes)
    values = rng.integers(0, n_values, codes.size).astype(float)
    values[0], values[-1] = 0.0, 1.0
    test = compare_trend(tuple("abcd"[: len(sizes)]), values, codes)
    rise = abs(count_rise(values, codes))
    drawn = [abs(count_rise(np.array(order), codes)) >= rise for order in permutations(values)]
    assert test.p == pytest.approx(np.mean(drawn))
    assert test.effect_size == pytest.approx(stats.somersd(codes, values).statistic)


def test_two_large_groups_have_the_p_of_mann_and_whitney(rng: np.random.Generator) -> None:
    a, b = rng.integers(0, 5, 30) * 1.0, rng.integers(0, 6, 50) * 1.0
    test = compare_trend(("a", "b"), np.concatenate([a, b]), code([30, 50]))
    expected = stats.mannwhitneyu(a, b, method="asymptotic", use_continuity=False)
    assert test.p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("values", [[1.0] * 6, [math.nan] * 6, [1.0, 2.0, *[math.nan] * 4]])
def test_without_groups_or_a_spread_it_is_undefined(values: list[float]) -> None:
    test = compare_trend(("a", "b", "c"), np.array(values), code([2] * 3))
    assert math.isnan(test.p)
    assert math.isnan(test.effect_size)


def test_undefined_values_and_empty_groups_do_not_count() -> None:
    values = np.array([1.0, 2.0, math.nan, 3.0, 4.0])
    test = compare_trend(("a", "b", "c"), values, np.array([0, 0, 1, 2, 2]))
    assert (test.a, test.b, test.n, test.effect_size) == ("c", "a", 4, 1.0)
    assert test.p == pytest.approx(2 / 6)


@pytest.mark.parametrize(("step", "least", "most"), [(0.0, 0.025, 0.08), (0.8, 0.8, 1.0)])
def test_fair_worlds_keep_the_level_and_a_planted_trend_is_found(
    step: float, least: float, most: float, rng: np.random.Generator
) -> None:
    codes = code([8, 15, 10, 7])
    worlds = [step * codes + rng.exponential(1.0, codes.size) for _ in range(300)]
    found = np.mean([compare_trend(tuple("abcd"), world, codes).p <= 0.05 for world in worlds])
    assert least <= found <= most
