"""Worked cases of the bets, and the mixture of confseq 0.0.11, in an environment of its own.

It needs Boost, and is older than NumPy 2 (``np.float_ = np.float64`` before its import):

    normal_log_mixture(s, v, v_opt=10.0, alpha_opt=0.05, is_one_sided=False)
"""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from recbias.statistics.confidence_sequences import (
    Bets,
    Betting,
    Exchangeable,
    find_best_rho,
    find_interval,
    mix_normal,
)

EFFECTS = [
    sign * 0.75 * NormalDist().inv_cdf(0.5 + (at + 0.5) / 24)
    for at in range(12)
    for sign in (1, -1)
]


def test_capital_of_bets_on_bounded_values() -> None:
    # before any value the standard deviation is 1/2; after 0.9 it is √((0.1/4 + 0.2²) / 1.1)
    values, mean = [0.9, 0.4], 0.3
    spreads = [0.5, math.sqrt((0.025 + 0.04) / 1.1)]
    capital = 0.0
    for effect in EFFECTS:
        product = 1.0
        for value, spread in zip(values, spreads, strict=True):
            bet = min(max(effect / spread, -0.9 / 0.7), 0.9 / 0.3)
            product *= 1 + bet * (value - mean)
        capital += product / len(EFFECTS)
    e = np.exp(Betting().log_e(np.array(values), mean))
    assert e[-1] == pytest.approx(capital)
    shifted = np.exp(Betting(-1.0, 1.0).log_e(2 * np.array(values) - 1, 2 * mean - 1))
    np.testing.assert_allclose(shifted, e)


def bet_by_hand(personas: list[list[float]]) -> float:
    """Return the e-value of replies, of each persona that to the other value first."""
    total = 0.0
    for effect in EFFECTS:
        product, variances = 1.0, list[float]()
        for replies in personas:
            variances.append(float(np.var(replies, ddof=1)))
            bet = 2 * effect / math.sqrt(2 * float(np.mean(variances)))
            product *= math.exp(bet * replies[0]) / float(np.mean(np.exp(bet * np.array(replies))))
        total += product / len(EFFECTS)
    return total


@pytest.mark.parametrize("n_arms", [2, 3])
def test_capital_of_bets_on_the_first_of_exchangeable_values(n_arms: int) -> None:
    personas = [[3.0, 1.0, 1.5], [2.0, 2.5, 1.0], [4.0, 2.0, 0.5], [1.0, 0.9, 0.2]]
    replies = np.array(personas)[:, :n_arms]
    e = math.exp(Exchangeable().log_e(replies[:, :1] - replies[:, 1:], 0.0)[-1])
    of_all = bet_by_hand(replies.tolist())
    of_means = bet_by_hand([[first, float(np.mean(rest))] for first, *rest in replies.tolist()])
    assert e == pytest.approx(min(of_all, of_means))
    shifted = Exchangeable().log_e(replies[:, :1] + 0.7 - replies[:, 1:], 0.7)
    assert math.exp(shifted[-1]) == pytest.approx(e)


@pytest.mark.parametrize("personas", [[[5.0, 0.0, 0.0], [1.0, 2.0, 9.0], [0.1, 0.2, 0.2]]])
def test_the_mean_over_the_orders_of_equal_requests_is_at_most_1(
    personas: list[list[float]],
) -> None:
    orders = itertools.product(*(itertools.permutations(replies) for replies in personas))
    of_all, smaller = zip(
        *(
            (
                bet_by_hand([*map(list, order)]),
                np.exp(
                    Exchangeable().log_e(
                        np.array(order)[:, :1] - np.array(order)[:, 1:],
                        0.0,
                    )[-1]
                ),
            )
            for order in orders
        ),
        strict=True,
    )
    assert np.mean(of_all) == pytest.approx(1.0)
    assert np.mean(smaller) <= 1.0


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


@pytest.mark.parametrize("bets", [Exchangeable(), Betting(-9.0, 9.0)])
def test_the_ends_of_a_sequence_are_the_means_at_which_the_e_value_is_the_limit(
    bets: Bets, rng: np.random.Generator
) -> None:
    values = rng.normal(0.2, 1.0, (200, 2)).clip(-9, 9)
    if isinstance(bets, Betting):
        values = values.mean(axis=1)
    ends = find_interval(bets, values, 0.05)
    assert ends[0] < values.mean() < ends[1]
    for end in ends:
        assert bets.log_e(values, end)[-1] == pytest.approx(np.log(20), abs=1e-6)
    assert find_interval(bets, values, 0.05, (0.1, 9.0)) == pytest.approx((0.1, ends[1]))
