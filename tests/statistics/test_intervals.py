from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.stats import t, ttest_rel

from recbias.core.dataset import FloatArray
from recbias.core.measures import Measurement
from recbias.statistics.intervals import (
    UNTESTABLE,
    ErrorOfMean,
    bootstrap_interval,
    bootstrap_standard_error,
    compare_share_ratio,
    compare_shares,
    compute_detectable_difference,
    compute_detectable_shift,
    compute_power,
    derive_error,
    detect_difference,
    estimate_ratio,
    estimate_resampled_ratio,
    find_sample_size,
    log_interval,
    measure_crossed_error,
    measure_group_error,
    rating_share_interval,
    scale_error,
    t_interval,
)


def test_t_interval_by_hand() -> None:
    # t(0.975; 8) = 2.306004; half = 2.306004 x 3 / 3
    low, high = t_interval(10.0, 3.0, 9)
    assert (float(low), float(high)) == pytest.approx((7.693996, 12.306004), abs=1e-6)


@given(
    mean=st.floats(-10, 10),
    std=st.floats(0.01, 10),
    n=st.integers(2, 1000),
    alpha=st.floats(0.001, 0.5),
)
def test_t_interval_agrees_with_scipy(mean: float, std: float, n: int, alpha: float) -> None:
    expected = stats.t.interval(1 - alpha, n - 1, loc=mean, scale=std / math.sqrt(n))
    low, high = t_interval(mean, std, n, alpha)
    assert (float(low), float(high)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [0, 1])
def test_below_two_units_there_is_no_t_interval(n: int) -> None:
    assert np.isnan(t_interval(0.5, 0.1, n)).all()


def test_t_intervals_of_many_means_at_once() -> None:
    low, high = t_interval(np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([4, 4]))
    assert high - low == pytest.approx([2 * 3.182446 / 2, 0], abs=1e-6)


def test_the_bootstrap_interval_lies_around_the_figure_and_not_around_its_samples() -> None:
    # samples 1, 2, 3: se 1; 1.959964 of it on either side of 5
    low, high = bootstrap_interval(5.0, np.array([1.0, 2.0, 3.0]))
    assert (float(low), float(high)) == pytest.approx((5 - 1.959964, 5 + 1.959964), abs=1e-6)


def test_undefined_samples_are_left_out_row_by_row() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0], [np.nan, 1.0, np.nan], [np.nan] * 3])
    assert bootstrap_standard_error(rows) == pytest.approx(
        [1.0, math.sqrt(2), np.nan, np.nan], nan_ok=True
    )


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_no_samples_have_no_spread(shape: tuple[int, ...]) -> None:
    assert np.isnan(bootstrap_standard_error(np.empty(shape))).all()


def test_t_intervals_cover_the_mean_as_often_as_they_say(rng: np.random.Generator) -> None:
    samples = rng.normal(1.0, 2.0, size=(4000, 8))
    low, high = t_interval(samples.mean(axis=1), samples.std(axis=1, ddof=1), 8, alpha=0.1)
    covered = np.mean((low <= 1) & (high >= 1))
    assert abs(covered - 0.9) < 4 * math.sqrt(0.09 / 4000)


def test_the_interval_of_a_share_is_that_of_wilson_if_raters_agree() -> None:
    for k, n in ((0, 5), (2, 7), (7, 7)):
        shares = [1.0] * k + [0.0] * (n - k)
        exact = stats.binomtest(k, n).proportion_ci(method="wilson")
        low, high = rating_share_interval(shares, 3 * n)
        assert (low, high) == pytest.approx((exact.low, exact.high))


def test_independent_raters_count_each_and_no_more_than_each() -> None:
    # share 1/3 of each of 6 responses by 3 raters: 18 ratings, 6 of them yes
    exact = stats.binomtest(6, 18).proportion_ci(method="wilson")
    low, high = rating_share_interval([1 / 3] * 6 + [np.nan], 18)
    assert (low, high) == pytest.approx((exact.low, exact.high))
    assert np.isnan(rating_share_interval([np.nan], 0)).all()


@pytest.mark.parametrize("spread", [0.3, 5.0, 50.0])
def test_the_interval_of_a_share_covers_the_truth(spread: float) -> None:
    rng = np.random.default_rng(4)
    n_worlds, n, n_raters, share = 600, 60, 3, 0.2
    rates = rng.beta(share * spread, (1 - share) * spread, size=(n_worlds, n))
    shares = rng.binomial(n_raters, rates) / n_raters
    ends = np.array([rating_share_interval(world, n * n_raters) for world in shares])
    covered = ((ends[:, 0] <= share) & (share <= ends[:, 1])).mean()
    assert 0.92 <= covered <= 0.975


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.integers(0, 1000))
def test_the_log_interval_of_a_ratio_and_of_its_inverse_are_inverse(
    point: float, scale: float, seed: int
) -> None:
    replicates = scale * np.random.default_rng(seed).lognormal(0.0, 0.3, 50)
    low, high = log_interval(point, replicates)
    assert low <= point <= high
    inverse = log_interval(1 / point, 1 / replicates)
    assert (1 / inverse[1], 1 / inverse[0]) == pytest.approx((low, high))


def test_the_log_interval_where_there_is_no_logarithm_is_normal() -> None:
    replicates = np.array([0.0, 0.1, 0.2])
    for point in (0.0, 0.1):
        expected = tuple(map(float, bootstrap_interval(point, replicates)))
        assert log_interval(point, replicates) == expected
    assert np.isnan(log_interval(np.nan, np.full(3, np.nan))).all()


def test_wilson_interval_holds_its_value() -> None:
    for n in range(1, 200):
        low, high = (Measurement.from_values(np.full(n, v), share=True) for v in (0.0, 1.0))
        assert (low.ci_low, high.ci_high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("a", "n_a", "b", "n_b", "low", "high"),
    [
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (0, 10, 0, 10, -0.2775, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
    ],
)
def test_differences_of_shares_have_the_published_intervals(
    a: int, n_a: int, b: int, n_b: int, low: float, high: float
) -> None:
    """Newcombe 1998, table II, method 10."""
    ends = compare_shares(a / n_a, n_a, b / n_b, n_b)[:2]
    assert ends == pytest.approx((low, high), abs=6e-5)
    swapped = compare_shares(b / n_b, n_b, a / n_a, n_a)[:2]
    assert swapped == pytest.approx((-high, -low), abs=6e-5)


@pytest.mark.parametrize("n", [5, 40])
def test_p_and_the_ratio_of_shares_agree_with_the_interval_of_the_difference(n: int) -> None:
    shares = np.arange(n + 1) / n
    a, b = (side.ravel() for side in np.meshgrid(shares, shares))
    low, high, p = compare_shares(a, n, b, n)
    np.testing.assert_array_equal(p < 0.05, (low > 0) | (high < 0))
    for share, other, least, most in zip(a, b, low, high, strict=True):
        ratio = compare_share_ratio(share, n, other, n)
        assert (ratio[0] <= 1 <= ratio[1]) == (least <= 0 <= most)
        assert other == 0 or ratio[0] - 1e-12 <= share / other <= ratio[1] + 1e-12


ROW: dict[str, Any] = {
    "between": "models",
    "test": "paired_t",
    "n": 4.0,
    "df": 3.0,
    "alpha": 0.05,
    "correction": "none",
    "family_size": 1.0,
}


def test_the_error_is_that_of_the_paired_differences() -> None:
    a, b = np.array([5.0, 4.0, 7.0, 6.0]), np.array([3.0, 3.0, 4.0, 4.0])
    interval = ttest_rel(a, b).confidence_interval(0.95)
    error, df = derive_error({**ROW, "ci_low": interval.low, "ci_high": interval.high})
    # Differences 2, 1, 3, 2: sd 0.8165, se 0.8165 / 2 = 0.4082.
    assert error == pytest.approx(0.40825, abs=1e-5)
    assert df == 3


@given(st.floats(0.01, 100), st.integers(1, 50))
def test_what_is_detectable_grows_with_the_interval_and_the_family(half: float, size: int) -> None:
    row = {**ROW, "ci_low": -half, "ci_high": half, "correction": "bonferroni"}
    single = detect_difference(row)
    assert detect_difference({**row, "family_size": size}) >= single
    assert single > half  # power is about one half at the half width
    assert detect_difference({**row, "ci_high": 2 * half}) > single


@pytest.mark.parametrize("test", sorted(UNTESTABLE))
def test_tests_of_no_two_means_have_no_detectable_difference(test: str) -> None:
    row = {**ROW, "test": test, "ci_low": -1.0, "ci_high": 1.0}
    assert math.isnan(detect_difference(row))


@pytest.mark.parametrize("half", [0.0, math.nan])
def test_without_variance_or_interval_it_is_undefined(half: float) -> None:
    assert math.isnan(detect_difference({**ROW, "ci_low": -half, "ci_high": half}))


@pytest.mark.parametrize(("n", "is_possible"), [(5, False), (6, True)])  # 2 / 2⁵ is 0.0625
def test_few_units_cannot_be_significant_by_their_signs(n: int, is_possible: bool) -> None:
    row = {**ROW, "test": "sign_flip", "n": float(n), "df": math.nan, "ci_low": -1, "ci_high": 1}
    assert math.isnan(detect_difference(row)) != is_possible


def test_groups_have_intervals_of_95_percent_at_any_level() -> None:
    half = float(t.ppf(0.975, 3))
    row = {**ROW, "between": "groups", "alpha": 0.01, "ci_low": -half, "ci_high": half}
    assert derive_error(row)[0] == pytest.approx(1.0)


def measure_paired(std: float, n: float) -> ErrorOfMean:
    return np.asarray(std / np.sqrt(n)), np.asarray(n - 1.0)


def test_detectable_shift_of_many_units_is_the_sum_of_two_normal_quantiles() -> None:
    # z(0.975) + z(0.8) = 1.95996 + 0.84162
    assert float(compute_detectable_shift(math.inf, 0.05, 0.8)) == pytest.approx(2.80158, abs=1e-5)
    assert float(compute_detectable_shift(1e7, 0.05, 0.8)) == pytest.approx(2.80158, abs=1e-4)


@pytest.mark.parametrize(("d", "n"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_sample_sizes_equal_the_published_ones(d: float, n: int) -> None:
    # Cohen's small, medium and large effect, paired, two-sided 5%: as G*Power 3.1 prints them
    (needed,) = find_sample_size(lambda m: measure_paired(1.0, m), d, smallest=[2])  # type: ignore[arg-type]
    assert needed == n


@pytest.mark.parametrize("df", [1.0, 3.7, 20.0, 599.0])
@pytest.mark.parametrize("alpha", [0.05, 0.00125, 1e-9])
def test_power_equals_the_integral_over_the_standard_deviation(df: float, alpha: float) -> None:
    critical = stats.t.isf(alpha / 2, df)
    shift = float(compute_detectable_shift(df, alpha, 0.8))

    def reject(quantile: float) -> float:
        ratio = math.sqrt(stats.chi2.ppf(quantile, df) / df)
        return float(stats.norm.sf(critical * ratio - shift))

    power, _ = quad(reject, 0, 1, limit=500, points=[0.8])
    assert power == pytest.approx(0.8, abs=2e-4)
    assert float(compute_power(shift, 1.0, df, alpha)) == pytest.approx(0.8, abs=2e-4)


@given(st.floats(0.01, 10), st.floats(0.02, 5), st.floats(0.001, 0.2), st.floats(0.5, 0.99))
def test_needed_units_reach_the_power_and_one_unit_less_does_not(
    std: float, difference: float, alpha: float, power: float
) -> None:
    def measure_error(n: FloatArray) -> ErrorOfMean:
        return measure_paired(std, n)  # type: ignore[arg-type]

    (n,) = find_sample_size(measure_error, difference, smallest=[2], alpha=alpha, power=power)
    assert float(compute_power(difference, *measure_error(n), alpha)) >= power - 1e-4
    if n > 2:
        assert float(compute_power(difference, *measure_error(n - 1), alpha)) <= power + 1e-4


@given(st.floats(0.01, 10), st.integers(2, 10**6))
def test_detectable_difference_of_a_run_needs_the_units_of_the_run(std: float, n: int) -> None:
    error, df = measure_paired(std, n)
    detectable = float(compute_detectable_difference(error, df))
    (needed,) = find_sample_size(
        scale_error(error, df, np.array(float(n))), detectable * (1 + 1e-9), smallest=[2]
    )
    assert needed == n


def test_error_of_groups_is_that_of_welch() -> None:
    # 4 / 10 + 1 / 30 = 0.4333; 0.4333^2 / (0.4^2 / 9 + 0.0333^2 / 29) = 10.54
    error, df = measure_group_error(np.array([4.0, 1.0]), np.array([0.25, 0.75]))(np.array(40.0))
    assert float(error) ** 2 == pytest.approx(0.43333, abs=1e-5)
    assert float(df) == pytest.approx(10.54, abs=0.01)


def test_error_of_crossed_samples_is_the_standard_deviation_of_their_means() -> None:
    rng, names, templates = np.random.default_rng(3), 5, 4
    components = np.array([0.5, 0.2, 1.0])
    name, template, rest = np.sqrt(components)
    worlds = (
        rng.normal(0, rest, (20_000, names, templates))
        + rng.normal(0, name, (20_000, names, 1))
        + rng.normal(0, template, (20_000, 1, templates))
    )
    error, _ = measure_crossed_error(components, names, templates)
    assert float(error) == pytest.approx(worlds.mean(axis=(1, 2)).std(), rel=0.02)


def test_no_number_of_names_replaces_templates() -> None:
    # variance 0.1 / 4 = 0.025 remains: se 0.158, at best 3 df
    def measure_error(n: FloatArray) -> ErrorOfMean:
        return measure_crossed_error(np.array([0.3, 0.1, 0.6]), n, 4)

    assert find_sample_size(measure_error, 0.3, smallest=[2]).tolist() == [math.inf]
    (needed,) = find_sample_size(measure_error, 0.9, smallest=[2])
    assert needed < 50


def test_error_without_a_value_needs_an_undefined_number() -> None:
    def measure_error(n: FloatArray) -> ErrorOfMean:
        return np.full(n.shape, np.nan), n - 1.0

    assert np.isnan(find_sample_size(measure_error, 0.1, smallest=[2])).all()
    assert np.isnan(compute_detectable_difference(np.nan, 5))
    assert np.isnan(compute_detectable_difference(1.0, 0))
    assert np.isnan(compute_power(0.1, 0.0, 5, 0.05))


def test_no_variance_detects_any_difference() -> None:
    assert float(compute_detectable_difference(0.0, 5)) == 0.0


def test_ratio_of_a_constant_divisor_has_the_t_interval() -> None:
    values = np.array([1.0, 2.0, 4.0, 7.0])
    ratio, low, high = estimate_ratio(values, np.full(4, 2.0))
    expected = t_interval(values.mean(), values.std(ddof=1), 4)
    assert ratio == pytest.approx(1.75)
    assert (low, high) == pytest.approx(tuple(float(end) / 2 for end in expected))


def test_interval_holds_the_ratios_that_a_t_test_does_not_reject(rng: np.random.Generator) -> None:
    from scipy.stats import ttest_1samp

    x = rng.normal(1.0, 1.0, 60)
    y = 0.5 * x + rng.normal(2.0, 1.0, 60)
    _, low, high = estimate_ratio(x, y)
    for theta, is_inside in ((low - 1e-6, False), (low + 1e-6, True), (high - 1e-6, True)):
        assert (ttest_1samp(x - theta * y, 0.0).pvalue > 0.05) == is_inside
    assert ttest_1samp(x - (high + 1e-6) * y, 0.0).pvalue <= 0.05


def test_interval_holds_the_true_ratio_in_95_of_100_samples(rng: np.random.Generator) -> None:
    n_inside = 0
    for _ in range(2000):
        x, y = rng.normal(0.3, 1.0, 40), rng.normal(1.0, 1.0, 40)
        _, low, high = estimate_ratio(x, y)
        n_inside += low <= 0.3 <= high
    assert 0.935 <= n_inside / 2000 <= 0.965


def test_there_is_no_interval_where_the_divisor_may_be_0() -> None:
    ratio, low, high = estimate_ratio(np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 1.0]))
    assert ratio == pytest.approx(12.0)
    assert math.isnan(low)
    assert math.isnan(high)
    for pairs in ([], [1.0]):
        values = np.array(pairs)
        assert all(map(math.isnan, estimate_ratio(values, values)[1:]))
    assert math.isnan(estimate_ratio(np.array([1.0, 2.0]), np.array([1.0, -1.0]))[0])


def test_interval_of_joint_samples_worked_by_hand() -> None:
    # samples (1, 4), (2, 4), (3, 4): v_xx = 1 and y is constant, so the interval is that of x,
    # 6 ± 1.96, divided by 4
    replicates = np.array([[1.0, 2.0, 3.0, np.nan], [4.0, 4.0, 4.0, 4.0]])
    ratio, low, high = estimate_resampled_ratio(6.0, 4.0, replicates)
    assert (ratio, low, high) == pytest.approx((1.5, 4.04 / 4, 7.96 / 4), abs=1e-4)
    # with t(0.975; 2) = 4.3027 in place of 1.96
    _, low, high = estimate_resampled_ratio(6.0, 4.0, replicates, df=2)
    assert (low, high) == pytest.approx((1.6973 / 4, 10.3027 / 4), abs=1e-4)


def test_joint_samples_of_means_have_the_interval_of_the_values(rng: np.random.Generator) -> None:
    x = rng.normal(1.0, 1.0, 400)
    y = 0.5 * x + rng.normal(2.0, 1.0, 400)
    counts = rng.multinomial(400, np.full(400, 1 / 400), 4000)
    replicates = np.stack([counts @ x, counts @ y]) / 400
    _, *ends = estimate_resampled_ratio(x.mean(), y.mean(), replicates)
    assert ends == pytest.approx(estimate_ratio(x, y)[1:], abs=0.005)


def test_no_interval_of_joint_samples_where_the_divisor_may_be_0() -> None:
    spread = np.array([[1.0, 2.0, 3.0], [-2.0, 0.0, 2.0]])
    assert all(map(math.isnan, estimate_resampled_ratio(1.0, 3.0, spread)[1:]))  # 3 < 1.96 * 2
    assert not math.isnan(estimate_resampled_ratio(1.0, 4.0, spread)[1])
    assert all(map(math.isnan, estimate_resampled_ratio(1.0, 4.0, spread[:, :1])[1:]))
    assert math.isnan(estimate_resampled_ratio(1.0, 0.0, spread)[0])
