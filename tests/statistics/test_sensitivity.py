from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from recbias.statistics.logs import bound_gap, bound_ratio, find_turn, weigh_worst


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


def test_bounds_of_the_gap_of_two_candidates_by_hand() -> None:
    # three rows of each: at Γ = 2 the λ of (1, 1, 0) are (.5, .5, 2), and those of (1, 0, 0) are
    # (2, .5, .5): (1 - 2) / 3; the largest gap has λ (1.25, 1.25, .5) and (.5, 1.25, 1.25)
    weights = np.kron(np.eye(2), np.full(3, 2.0))
    low, high = bound_gap(weights, np.array([1.0, 1, 0, 1, 0, 0]), 2.0)
    assert (low.value, high.value) == pytest.approx((-1 / 3, (2.5 - 0.5) / 3))


@pytest.mark.parametrize("seed", range(10))
def test_bounds_of_the_gap_hold_and_are_reached(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, rewards = rng.exponential(size=(2, 8)), rng.integers(3, size=8).astype(float)
    low, high = bound_gap(weights, rewards, 2.0)
    shares = weights / weights.sum(axis=1, keepdims=True)
    gains = (shares[0] - shares[1]) * rewards
    # a vertex has all factors but two at an end
    most = [-np.inf]
    for rows in itertools.combinations(range(8), 2):
        rest = np.delete(np.arange(8), rows)
        for ends in itertools.product((0.5, 2.0), repeat=6):
            factors = np.empty(8)
            factors[rest] = ends
            factors[[*rows]] = np.linalg.solve(shares[:, rows], 1 - shares[:, rest] @ ends)
            if (factors >= 0.5 - 1e-9).all() and (factors <= 2 + 1e-9).all():
                most.append(factors @ gains)
    assert high.value == pytest.approx(max(most))
    assert low.value == pytest.approx(-bound_gap(weights[::-1], rewards, 2.0)[1].value)
    separate = [bound_ratio(each, rewards, 2.0) for each in weights]
    assert separate[0][0] - separate[1][1] <= low.value
    counts = rng.integers(1, 4, 8).astype(float)
    repeated = bound_gap(
        np.repeat(weights, counts.astype(int), axis=1), np.repeat(rewards, counts.astype(int)), 2.0
    )
    for one, other in zip(bound_gap(weights, rewards, 2.0, counts), repeated, strict=True):
        assert one.value == pytest.approx(other.value)
