from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.statistics.intervals import estimate_ratio, estimate_resampled_ratio, t_interval


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
