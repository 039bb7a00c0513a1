from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import FloatArray
from recbias.statistics.paired import compute_pair_moments


def random_values(seed: int, *, holes: float) -> FloatArray:
    rng = np.random.default_rng(seed)
    n_systems, n_units = rng.integers(2, 6), rng.integers(1, 30)
    values = rng.normal(rng.uniform(-5, 5), 1.0, size=(n_systems, n_units))
    values[rng.random(values.shape) < holes] = np.nan
    return values


def test_moments_by_hand() -> None:
    # over units 0, 1, 3: a = 1, 2, 6 (mean 3), b = 2, 0, 1 (mean 1); differences -1, 2, 5:
    # mean 2, squares 9 + 0 + 9, sd sqrt(18 / 2) = 3
    values = np.array([[1.0, 2.0, 8.0, 6.0], [2.0, 0.0, np.nan, 1.0]])
    moments = compute_pair_moments(values)
    assert (moments.a.tolist(), moments.b.tolist(), moments.n.tolist()) == ([0], [1], [3])
    assert (moments.mean_a[0], moments.mean_b[0]) == pytest.approx((3, 1))
    assert (moments.difference[0], moments.std[0]) == pytest.approx((2, 3))


@pytest.mark.parametrize("holes", [0.0, 0.3])
@given(seed=st.integers(0, 2**32 - 1))
def test_one_pass_agrees_with_each_pair_by_itself(holes: float, seed: int) -> None:
    values = random_values(seed, holes=holes)
    moments = compute_pair_moments(values)
    for pair, (a, b) in enumerate(zip(moments.a, moments.b, strict=True)):
        both = ~np.isnan(values[a] - values[b])
        gaps = (values[a] - values[b])[both]
        assert moments.n[pair] == both.sum()
        if gaps.size:
            assert moments.mean_a[pair] == pytest.approx(values[a][both].mean(), rel=1e-12)
            assert moments.difference[pair] == pytest.approx(gaps.mean(), rel=1e-9, abs=1e-13)
        if gaps.size > 1:
            assert moments.std[pair] == pytest.approx(gaps.std(ddof=1), rel=1e-11)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_systems_that_are_nearly_the_same_keep_their_digits(
    gap: float, rng: np.random.Generator
) -> None:
    values = rng.normal(100.0, 30.0, size=5000)
    two = values + gap * rng.normal(0.2, 1.0, size=5000)
    expected = values - two
    moments = compute_pair_moments(np.stack([values, two]))
    assert moments.std[0] == pytest.approx(expected.std(ddof=1), rel=1e-13)
    assert moments.difference[0] == pytest.approx(expected.mean(), rel=1e-13)


@pytest.mark.parametrize("shared", [0, 1])
def test_below_two_shared_units_there_is_no_spread(shared: int) -> None:
    values = np.array([[1.0, 2.0, np.nan], [np.nan, 4.0 if shared else np.nan, 5.0]])
    moments = compute_pair_moments(values)
    assert moments.n[0] == shared
    assert np.isnan(moments.std[0])
    assert np.isnan(moments.difference[0]) == (shared == 0)


def test_columns_hold_the_t_interval_of_the_difference() -> None:
    # differences -1, 2, 5: mean 2, sd 3, t(0.975; 2) = 4.302653, half 4.302653 x 3 / sqrt(3)
    columns = compute_pair_moments(np.array([[1.0, 2.0, 6.0], [2.0, 0.0, 1.0]])).columns(0.05)
    assert columns["ci_low"][0] == pytest.approx(2 - 7.452413, abs=1e-6)
    assert columns["ci_high"][0] == pytest.approx(2 + 7.452413, abs=1e-6)
    assert list(columns) == ["a", "b", "n", "mean_a", "mean_b", "difference", "ci_low", "ci_high"]
