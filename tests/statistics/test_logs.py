"""The e-values are those of confseq 0.0.11, which was run in an environment of its own.

It needs Boost, and is older than NumPy 2 (``np.float_ = np.float64`` before its import):

    lambdas = lambda x, m: lambda_predmix_eb(x, alpha=0.025)  # log(1/α) there, log(2/α) here
    betting_mart(x, m, lambdas_fn_positive=lambdas, convex_comb=True)
    normal_log_mixture(s, v, v_opt=10.0, alpha_opt=0.05, is_one_sided=False)
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import AnyArray, FloatArray
from recbias.statistics.confidence_sequences import (
    Betting,
    NormalMixture,
    find_best_rho,
    find_interval,
    mix_normal,
)
from recbias.statistics.logs import (
    bound_ratio,
    find_turn,
    fit_position_bias,
    tally_positions,
    weigh_worst,
)


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


EXAMINED = np.array([1.0, 0.6, 0.4, 0.25])


def estimate_position_bias(
    strata: AnyArray, positions: AnyArray, rewards: AnyArray, users: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    shape = int(strata.max()) + 1, int(positions.max()) + 1
    fit = fit_position_bias(*tally_positions(strata, positions, rewards, shape))
    scores = fit.score_users(strata, positions, rewards, users, int(users.max()) + 1)
    return (fit.values, *fit.find_intervals(scores))


def test_harvested_ratios_of_two_items() -> None:
    # item 0: 10 rows at the first position, 30 at the second; item 1: 20 and 20
    # a_12 = 6 * 30/40 + 4 * 20/40 = 6.5, a_21 = 9 * 10/40 + 2 * 20/40 = 3.25; 3.25/6.5
    shown = np.array([[10.0, 30.0], [20.0, 20.0]])
    clicks = np.array([[6.0, 9.0], [4.0, 2.0]])
    assert fit_position_bias(shown, clicks).values == pytest.approx([1.0, 0.5])


def test_a_chain_of_pairs_connects_positions() -> None:
    # item 0 at positions 1 and 2 (4 : 2), item 1 at 2 and 3 (3 : 1), item 2 at 4 and 5 only
    shown = np.array([[9.0, 9, 0, 0, 0], [0, 9, 9, 0, 0], [0, 0, 0, 9, 9]])
    clicks = np.array([[4.0, 2, 0, 0, 0], [0, 3, 1, 0, 0], [0, 0, 0, 5, 5]])
    values = fit_position_bias(shown, clicks).values
    assert values == pytest.approx([1, 1 / 2, 1 / 6, np.nan, np.nan], nan_ok=True)


def test_position_bias_does_not_depend_on_relevance_or_traffic() -> None:
    shown = np.random.default_rng(0).integers(1, 500, (40, 4)).astype(float)
    relevance = np.random.default_rng(1).random((40, 1))
    fit = fit_position_bias(shown, shown * relevance * EXAMINED)
    assert fit.values == pytest.approx(EXAMINED)


def draw_clicks(kind: str, rng: np.random.Generator) -> tuple[AnyArray, AnyArray, Any, AnyArray]:
    """Return strata, positions, clicks and users of a log of users who click differently often."""
    n_users, n_items, k = 300, 30, EXAMINED.size
    users = np.repeat(np.arange(n_users), rng.integers(1, 12, n_users))
    activity = np.clip(rng.beta(2, 2, n_users), 0.05, 1)[users]
    relevance = rng.beta(1, 2, n_items)
    if kind == "random":
        items = np.argsort(rng.random((users.size, n_items)), axis=1)[:, :k]
    else:  # three variants that order the six best items differently
        orders = np.array([np.argsort(-relevance)[:6][rng.permutation(6)] for _ in range(3)])
        of_users = rng.integers(0, 3, n_users)[users]
        items = orders[of_users if kind == "items" else rng.integers(0, 3, users.size)][:, :k]
    clicks = rng.random(items.shape) < EXAMINED * relevance[items] * activity[:, None]
    rows, listed = np.repeat(users, k), items.ravel()
    strata = {
        "items": listed,
        "users": np.unique(rows * n_items + listed, return_inverse=True)[1],
    }.get(kind, np.zeros(rows.size, dtype=np.int64))
    positions = np.tile(np.arange(k), users.size)
    return strata, positions, clicks.ravel().astype(float), rows


def cover(kind: str, n_worlds: int) -> FloatArray:
    """Return how often the interval of each position but the first holds the truth."""
    rng = np.random.default_rng(1)
    hits, n = np.zeros(EXAMINED.size), np.zeros(EXAMINED.size)
    for _ in range(n_worlds):
        values, low, high = estimate_position_bias(*draw_clicks(kind, rng))
        hits += (low <= EXAMINED) & (high >= EXAMINED)
        n += ~np.isnan(values)
    return np.asarray(hits / n)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "items", "users"])
def test_intervals_hold_the_truth_in_95_percent_of_the_worlds(kind: str) -> None:
    assert cover(kind, 2000) == pytest.approx(0.95, abs=0.02)


def test_intervals_fail_where_positions_are_not_random() -> None:
    assert (cover("one stratum, but better items higher", 60) < 0.85).all()


VALUES = np.array([0.9, 0.4, 0.75, 1.0, 0.1, 0.85, 0.6, 0.95])


@pytest.mark.parametrize(
    ("mean", "capital"),
    [
        (0.3, [1.28571429, 1.43197279, 2.22169582, 4.51362569]),
        (0.5, [1.0, 0.96, 1.035, 1.305, 0.882, 1.069425, 1.153845, 1.58185913]),
        (0.9, [1.0, 2.06415373, 3.05993581, 2.08019791, 6.22587773, 6.92993162]),
    ],
)
def test_bets_have_the_capital_of_confseq(mean: float, capital: list[float]) -> None:
    e = np.exp(Betting().log_e(VALUES, mean))
    np.testing.assert_allclose(e[: len(capital)], capital, rtol=1e-8)
    shifted = np.exp(Betting(-1.0, 1.0).log_e(2 * VALUES - 1, 2 * mean - 1))
    np.testing.assert_allclose(shifted, e)


@pytest.mark.parametrize(
    ("alpha", "log_e"),
    [
        (0.05, [-0.23680833, 0.14101146, 1.33935014]),
        (0.025, [-0.27309189, 0.10624312, 1.30883455]),
    ],
)
def test_the_normal_mixture_is_that_of_confseq(alpha: float, log_e: list[float]) -> None:
    s, v = np.array([0.5, -3.0, 7.0]), np.array([1.0, 4.0, 9.0])
    mixed = mix_normal(s, v, find_best_rho(10.0, alpha))
    np.testing.assert_allclose(mixed, log_e, atol=1e-8)


def test_the_ends_of_a_sequence_are_the_means_at_which_the_e_value_is_the_limit(
    rng: np.random.Generator,
) -> None:
    values = rng.normal(0.2, 1.0, 200)
    ends = find_interval(NormalMixture(), values, 0.05)
    assert ends[0] < values.mean() < ends[1]
    for end in ends:
        assert NormalMixture().log_e(values, end)[-1] == pytest.approx(np.log(20), abs=1e-6)
