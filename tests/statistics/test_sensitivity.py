from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from recbias.statistics.logs import bound_ratio, find_turn, weigh_worst


@pytest.mark.parametrize("seed", range(20))
def test_bounds_equal_those_of_all_corners(seed: int) -> None:
    # a ratio of linear functions is largest at a corner of the box of the factors
    rng = np.random.default_rng(seed)
    n, factor = int(rng.integers(1, 9)), float(rng.uniform(1, 4))
    weights = rng.exponential(size=n) * (rng.random(n) < 0.8) + 1e-9
    rewards = rng.integers(-1, 3, n).astype(float)
    corners = np.array(list(itertools.product((1 / factor, factor), repeat=n)))
    ratios = corners @ (weights * rewards) / (corners @ weights)
    bounds = bound_ratio(weights, rewards, factor)
    assert bounds == pytest.approx((ratios.min(), ratios.max()))
    for bound, highest in zip(bounds, (False, True), strict=True):
        worst = weigh_worst(rewards, bound, factor, highest=highest) * weights
        assert worst @ rewards / worst.sum() == pytest.approx(bound)


def test_bounds_hold_whatever_the_true_propensities_are() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        weights, rewards = rng.exponential(size=30), rng.normal(size=30)
        wrong = 2.0 ** rng.uniform(-1, 1, 30)
        low, high = bound_ratio(weights, rewards, 2.0)
        assert low <= weights * wrong @ rewards / (weights @ wrong) <= high


def test_bounds_without_error_and_without_weight() -> None:
    weights, rewards = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    assert bound_ratio(weights, rewards, 1.0) == pytest.approx((1 / 3, 1 / 3))
    assert np.isnan(bound_ratio(0 * weights, rewards, 2.0)).all()


@pytest.mark.parametrize(
    ("gap", "turn"),
    [
        (lambda x: x - 2.0, 2.0),
        (lambda x: math.sin(math.pi * x), 1.0),
        (lambda x: 1.0, math.nan),
        (lambda x: 0.0, math.nan),
        (lambda x: math.nan, math.nan),
    ],
)
def test_the_least_value_at_which_a_gap_turns(gap: object, turn: float) -> None:
    assert find_turn(gap, 0.5, 5.0) == pytest.approx(turn, nan_ok=True)  # type: ignore[arg-type]
