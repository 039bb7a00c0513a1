from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.core.measures import Measurement
from recbias.statistics.intervals import (
    bootstrap_standard_error,
    compare_share_ratio,
    compare_shares,
    log_interval,
    normal_interval,
    rating_share_interval,
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
        expected = tuple(map(float, normal_interval(point, replicates)))
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
