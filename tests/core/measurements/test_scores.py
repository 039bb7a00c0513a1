from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.measurements.scores import Measurement, UnitScores, badness


def units(values: list[float]) -> UnitScores:
    ids = np.array([f"u{each}" for each in range(len(values))], dtype=object)
    return UnitScores("user", ids, np.array(values, dtype=np.float64))


def test_mean_spread_and_interval_of_four_units() -> None:
    # mean 0.5; squares 4 x 0.25 over 3 = 1/3, sd 0.577350; t(0.975; 3) = 3.182446
    # half = 3.182446 x 0.577350 / 2 = 0.918693
    found = Measurement.from_units(units([0, 1, 1, 0]))
    assert found.value == 0.5
    assert found.std == pytest.approx(0.577350, abs=1e-6)
    assert found.ci_low == pytest.approx(0.5 - 0.918693, abs=1e-6)
    assert found.ci_high == pytest.approx(0.5 + 0.918693, abs=1e-6)
    assert (found.n, found.undefined) == (4, 0)


def test_undefined_units_are_counted_and_left_out_but_kept() -> None:
    found = Measurement.from_units(units([1, math.nan, 3]), group="race=black", target="price=$")
    assert (found.value, found.n, found.undefined) == (2, 2, 1)
    assert (found.group, found.target) == ("race=black", "price=$")
    assert found.units is not None
    assert len(found.units.values) == 3


@pytest.mark.parametrize("values", [[], [math.nan, math.nan]])
def test_nothing_defined_is_nan_not_zero(values: list[float]) -> None:
    found = Measurement.from_units(units(values))
    assert all(map(math.isnan, (found.value, found.std, found.ci_low, found.ci_high)))
    assert (found.n, found.undefined) == (0, len(values))


def test_one_unit_has_a_value_but_no_spread() -> None:
    found = Measurement.from_values(np.array([0.25]))
    assert found.value == 0.25
    assert all(map(math.isnan, (found.std, found.ci_low, found.ci_high)))


def test_values_alone_keep_no_units() -> None:
    assert Measurement.from_values(np.array([1.0, 2.0])).units is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_interval_agrees_with_scipy(values: list[float]) -> None:
    found = Measurement.from_values(np.array(values))
    sem = np.std(values, ddof=1) / math.sqrt(len(values))
    half = stats.t.ppf(0.975, len(values) - 1) * sem
    assert found.ci_high - found.value == pytest.approx(half, rel=1e-6, abs=1e-6)
    assert found.value - found.ci_low == pytest.approx(half, rel=1e-6, abs=1e-6)


def test_a_share_has_wilsons_interval() -> None:
    # 8 of 10: centre (0.8 + 3.8415/20) / (1 + 0.38415) = 0.716740; half 0.226579
    ids = np.array([str(each) for each in range(10)], dtype=object)
    shares = UnitScores("user", ids, np.array([1.0] * 8 + [0.0] * 2), share=True)
    found = Measurement.from_units(shares)
    theirs = stats.binomtest(8, 10).proportion_ci(method="wilson")
    assert (found.ci_low, found.ci_high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_a_share_of_all_or_none_has_a_width() -> None:
    all_ = Measurement.from_values(np.ones(218), share=True)
    none = Measurement.from_values(np.zeros(218), share=True)
    assert all_.ci_high == 1.0
    assert all_.ci_low == pytest.approx(1 / (1 + 1.959964**2 / 218), abs=1e-6)
    assert (none.ci_low, none.ci_high) == pytest.approx((0.0, 1 - all_.ci_low), abs=1e-9)


def test_badness_is_less_the_better_a_figure_is() -> None:
    assert badness(2.0, "higher") < badness(1.0, "higher")
    assert badness(1.0, "lower") < badness(2.0, "lower")
    assert badness(-0.1, "zero") < badness(0.2, "zero") < badness(-0.3, "zero")


def test_badness_is_undefined_without_a_direction() -> None:
    assert math.isnan(badness(0.3, "none"))
    assert badness(-0.3, "zero") == 0.3
