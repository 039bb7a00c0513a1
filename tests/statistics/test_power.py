from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from recbias.core.dataset import FloatArray
from recbias.statistics.intervals import (
    ErrorOfMean,
    compute_detectable_difference,
    compute_detectable_shift,
    compute_power,
    find_sample_size,
    measure_crossed_error,
    measure_group_error,
    scale_error,
)


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
