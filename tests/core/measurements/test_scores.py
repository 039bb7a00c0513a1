from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.measures import Measurement, UnitScores, to_loss


def make_units(values: list[float]) -> UnitScores:
    ids = np.array([f"u{user}" for user in range(len(values))], dtype=object)
    return UnitScores("user", ids, np.array(values, dtype=np.float64))


def test_mean_standard_deviation_and_interval_of_four_units() -> None:
    # mean 0.5; squares 4 x 0.25 over 3 = 1/3, sd 0.577350; t(0.975; 3) = 3.182446
    # half = 3.182446 x 0.577350 / 2 = 0.918693
    measurement = Measurement.from_units(make_units([0, 1, 1, 0]))
    assert measurement.value == 0.5
    assert measurement.std == pytest.approx(0.577350, abs=1e-6)
    assert measurement.ci_low == pytest.approx(0.5 - 0.918693, abs=1e-6)
    assert measurement.ci_high == pytest.approx(0.5 + 0.918693, abs=1e-6)
    assert (measurement.n, measurement.undefined) == (4, 0)


def test_undefined_units_are_counted_and_excluded_from_the_mean() -> None:
    measurement = Measurement.from_units(
        make_units([1, math.nan, 3]), group="race=black", target="price=$"
    )
    assert (measurement.value, measurement.n, measurement.undefined) == (2, 2, 1)
    assert (measurement.group, measurement.target) == ("race=black", "price=$")
    assert measurement.units is not None
    assert len(measurement.units.values) == 3


@pytest.mark.parametrize("values", [[], [math.nan, math.nan]])
def test_a_value_without_defined_units_is_nan(values: list[float]) -> None:
    measurement = Measurement.from_units(make_units(values))
    assert all(
        map(
            math.isnan,
            (measurement.value, measurement.std, measurement.ci_low, measurement.ci_high),
        )
    )
    assert (measurement.n, measurement.undefined) == (0, len(values))


def test_one_unit_has_a_value_but_no_interval() -> None:
    measurement = Measurement.from_values(np.array([0.25]))
    assert measurement.value == 0.25
    assert all(map(math.isnan, (measurement.std, measurement.ci_low, measurement.ci_high)))


def test_a_measurement_of_values_has_no_units() -> None:
    assert Measurement.from_values(np.array([1.0, 2.0])).units is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_the_interval_agrees_with_scipy(values: list[float]) -> None:
    measurement = Measurement.from_values(np.array(values))
    sem = np.std(values, ddof=1) / math.sqrt(len(values))
    half = stats.t.ppf(0.975, len(values) - 1) * sem
    assert measurement.ci_high - measurement.value == pytest.approx(half, rel=1e-6, abs=1e-6)
    assert measurement.value - measurement.ci_low == pytest.approx(half, rel=1e-6, abs=1e-6)


def test_a_proportion_has_wilsons_interval() -> None:
    # 8 of 10: centre (0.8 + 3.8415/20) / (1 + 0.38415) = 0.716740; half 0.226579
    ids = np.array([str(user) for user in range(10)], dtype=object)
    scores = UnitScores("user", ids, np.array([1.0] * 8 + [0.0] * 2), share=True)
    measurement = Measurement.from_units(scores)
    expected = stats.binomtest(8, 10).proportion_ci(method="wilson")
    assert (measurement.ci_low, measurement.ci_high) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )


def test_the_interval_of_proportion_0_or_1_has_a_positive_width() -> None:
    high = Measurement.from_values(np.ones(218), share=True)
    low = Measurement.from_values(np.zeros(218), share=True)
    assert high.ci_high == 1.0
    assert high.ci_low == pytest.approx(1 / (1 + 1.959964**2 / 218), abs=1e-6)
    assert (low.ci_low, low.ci_high) == pytest.approx((0.0, 1 - high.ci_low), abs=1e-9)


def test_a_better_value_has_a_smaller_loss() -> None:
    assert to_loss(2.0, "higher") < to_loss(1.0, "higher")
    assert to_loss(1.0, "lower") < to_loss(2.0, "lower")
    assert to_loss(-0.1, "zero") < to_loss(0.2, "zero") < to_loss(-0.3, "zero")


def test_the_loss_is_undefined_without_a_direction() -> None:
    assert math.isnan(to_loss(0.3, "none"))
    assert to_loss(-0.3, "zero") == 0.3
