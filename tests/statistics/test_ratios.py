from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.statistics.intervals import t_interval
from recbias.statistics.ratios import estimate_ratio


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
