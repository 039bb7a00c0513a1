from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recbias.config.specs import FeedbackSpec
from recbias.core.dataset import BoolArray
from recbias.runner.feedback import sample_choices

N = 40_000
"""Users with the same list."""


def sample_many(weights: list[float], ideal: list[float], **settings: Any) -> BoolArray:
    choice = FeedbackSpec(**{"rounds": 2, **settings})
    lists, ideals = (np.tile(row, (N, 1)) for row in (weights, ideal))
    return sample_choices(lists, ideals, choice, np.random.default_rng(1))


def assert_shares(accepted: BoolArray, expected: list[float]) -> None:
    errors = np.sqrt(np.array(expected) * (1 - np.array(expected)) / N)
    assert (np.abs(accepted.mean(axis=0) - expected) <= 4 * errors).all()


def test_hand_worked_probabilities_of_one_choice() -> None:
    # w = 2, 1, 1 of an ideal list of 4, 2, 2, position 0: W = 8, the sum 4, a = 1/2, so
    # P = (2, 1, 1) / 2 / (8 / 2 + 4 / 2) = 1/6, 1/12, 1/12
    accepted = sample_many([2.0, 1.0, 1.0], [4.0, 2.0, 2.0], acceptance=0.5, position=0.0)
    assert_shares(accepted, [1 / 6, 1 / 12, 1 / 12])
    assert accepted.sum(axis=1).max() == 1


def test_hand_worked_probabilities_with_positions() -> None:
    # with position 1 the odds of the ranks are 2, 1/2 and 1/3 of ideal odds 2, 1/2, 1/3: the list
    # is ideal, so one is accepted with probability a = 0.6, divided 12 : 3 : 2
    accepted = sample_many([2.0, 1.0, 1.0], [2.0, 1.0, 1.0], acceptance=0.6, position=1.0)
    assert_shares(accepted, [0.6 * 12 / 17, 0.6 * 3 / 17, 0.6 * 2 / 17])


def test_several_choices_are_those_of_a_plackett_luce_model_that_ends_with_nothing() -> None:
    # second opinion: P of a set of accepted items, by enumerating the orders of three items and
    # "nothing" (3) by their odds, cut at nothing and at two picks
    odds = [3.0, 2.0, 1.0, 4.0]  # nothing: (1 - a) / a * 6 with a = 0.6
    expected = np.zeros(3)
    for order in itertools.permutations(range(4)):
        left, probability = sum(odds), 1.0
        for item in order:
            probability *= odds[item] / left
            left -= odds[item]
        for item in order[: min(order.index(3), 2)]:
            expected[item] += probability
    accepted = sample_many(odds[:3], odds[:3], acceptance=0.6, picks=2, position=0.0)
    assert_shares(accepted, expected.tolist())
    assert accepted.sum(axis=1).max() == 2


@given(
    seed=st.integers(0, 10**6),
    acceptance=st.floats(0, 1),
    picks=st.integers(1, 4),
    position=st.floats(0, 3),
)
def test_properties(seed: int, acceptance: float, picks: int, position: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random((20, 4)) * (rng.random((20, 4)) < 0.7)
    choice = FeedbackSpec(rounds=2, acceptance=acceptance, picks=picks, position=position)
    accepted = sample_choices(weights, np.ones((20, 4)), choice, np.random.default_rng(seed))
    assert accepted.sum(axis=1).max() <= picks
    assert not accepted[weights == 0].any()
    assert acceptance > 0 or not accepted.any()
    # whoever accepts an item accepts one with a better ideal list, or a better item, removed
    more = FeedbackSpec(rounds=2, acceptance=1.0, picks=picks, position=position)
    certain = sample_choices(weights, np.ones((20, 4)), more, np.random.default_rng(seed))
    assert (accepted <= certain).all()
