from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.scores import Measurement, UnitScores


def units(values: list[float]) -> UnitScores:
    ids = np.array([f"u{each}" for each in range(len(values))], dtype=object)
    return UnitScores("user", ids, np.array(values, dtype=np.float64))


def test_mean_spread_and_interval_of_four_units() -> None:
    # mean 0.5; squares 4 x 0.25 over 3 = 1/3, sd 0.577350; t(0.975; 3) = 3.182446
    # half = 3.182446 x 0.577350 / 2 = 0.918693
    found = Measurement.of_units(units([0, 1, 1, 0]))
    assert found.value == 0.5
    assert found.std == pytest.approx(0.577350, abs=1e-6)
    assert found.ci_low == pytest.approx(0.5 - 0.918693, abs=1e-6)
    assert found.ci_high == pytest.approx(0.5 + 0.918693, abs=1e-6)
    assert (found.n, found.undefined) == (4, 0)


def test_undefined_units_are_counted_and_left_out_but_kept() -> None:
    found = Measurement.of_units(units([1, math.nan, 3]), group="race=black", target="price=$")
    assert (found.value, found.n, found.undefined) == (2, 2, 1)
    assert (found.group, found.target) == ("race=black", "price=$")
    assert found.units is not None
    assert len(found.units.values) == 3


@pytest.mark.parametrize("values", [[], [math.nan, math.nan]])
def test_nothing_defined_is_nan_not_zero(values: list[float]) -> None:
    found = Measurement.of_units(units(values))
    assert all(map(math.isnan, (found.value, found.std, found.ci_low, found.ci_high)))
    assert (found.n, found.undefined) == (0, len(values))


def test_one_unit_has_a_value_but_no_spread() -> None:
    found = Measurement.of_values(np.array([0.25]))
    assert found.value == 0.25
    assert all(map(math.isnan, (found.std, found.ci_low, found.ci_high)))


def test_values_alone_keep_no_units() -> None:
    assert Measurement.of_values(np.array([1.0, 2.0])).units is None


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_interval_agrees_with_scipy(values: list[float]) -> None:
    found = Measurement.of_values(np.array(values))
    sem = np.std(values, ddof=1) / math.sqrt(len(values))
    half = stats.t.ppf(0.975, len(values) - 1) * sem
    assert found.ci_high - found.value == pytest.approx(half, rel=1e-6, abs=1e-6)
    assert found.value - found.ci_low == pytest.approx(half, rel=1e-6, abs=1e-6)
