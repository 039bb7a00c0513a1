from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.statistics.intervals import bootstrap_standard_error, normal_interval, t_interval


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


def test_the_normal_interval_lies_around_the_figure_and_not_around_its_samples() -> None:
    # samples 1, 2, 3: se 1; 1.959964 of it on either side of 5
    low, high = normal_interval(5.0, np.array([1.0, 2.0, 3.0]))
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
