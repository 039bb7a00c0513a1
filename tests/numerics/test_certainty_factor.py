from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.groups import certainty_factor

OPEN = st.floats(-0.99, 0.99).filter(lambda score: score == 0 or abs(score) > 1e-6)
ANY = st.one_of(OPEN, st.sampled_from([-1.0, 1.0]))


def combine(scores: list[float]) -> float:
    return float(certainty_factor(scores, [0] * len(scores), 1)[0])


def fold_scores(scores: list[float]) -> float:
    """The rule as it is written, score after score."""
    factor = scores[0]
    for score in scores[1:]:
        if factor >= 0 and score >= 0:
            factor = factor + score - factor * score
        elif factor <= 0 and score <= 0:
            factor = factor + score + factor * score
        else:
            factor = (factor + score) / (1 - min(abs(factor), abs(score)))
    return factor


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.4], 0.4),
        ([0.5, 0.6], 0.8),  # 0.5 + 0.6 - 0.3
        ([-0.5, -0.6], -0.8),
        ([0.6, -0.2], 0.5),  # 0.4 / (1 - 0.2)
        ([0.2, -0.6], -0.5),
        ([0.5, 0.6, -0.2], 0.75),  # (0.8 - 0.2) / (1 - 0.2)
        ([0.3, -0.3], 0.0),
        ([0.0, 0.0], 0.0),
        ([0.7, 0.0], 0.7),
    ],
)
def test_combination_matches_hand_computation(scores: list[float], expected: float) -> None:
    assert combine(scores) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, -0.99], 1.0),  # 0.01 / (1 - 0.99)
        ([-1.0, 0.5, 0.5], -1.0),
        ([1.0, 1.0], 1.0),
        ([1.0, -1.0], 0.0),  # undefined by the rule
        ([1.0, 0.5, -1.0], 0.0),
    ],
)
def test_certain_scores_decide(scores: list[float], expected: float) -> None:
    for order in permutations(scores):
        assert combine(list(order)) == expected


def test_groups_are_separate_and_empty_groups_are_zero() -> None:
    factors = certainty_factor([0.5, -0.5, 0.6], [2, 0, 2], 4)
    assert factors == pytest.approx([-0.5, 0.0, 0.8, 0.0])
    assert certainty_factor([], []).size == 0
    assert certainty_factor([], [], 2).tolist() == [0.0, 0.0]


@given(st.lists(OPEN, min_size=1, max_size=8))
def test_closed_form_equals_the_pairwise_rule(scores: list[float]) -> None:
    assert combine(scores) == pytest.approx(fold_scores(scores), abs=1e-9)


@given(st.lists(ANY, max_size=12), st.randoms(use_true_random=False))
def test_order_is_irrelevant_and_values_stay_in_range(scores: list[float], chance: object) -> None:
    shuffled = sorted(scores, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert combine(shuffled) == pytest.approx(combine(scores), abs=1e-12)
    assert -1 <= combine(scores) <= 1


@given(st.lists(ANY, max_size=8))
def test_zero_is_neutral_and_negation_is_symmetric(scores: list[float]) -> None:
    assert combine([*scores, 0.0]) == combine(scores)
    assert combine([-score for score in scores]) == -combine(scores)


@given(st.lists(OPEN, min_size=1, max_size=5), st.lists(OPEN, min_size=1, max_size=5))
def test_combination_is_associative(first: list[float], second: list[float]) -> None:
    parts = [combine(first), combine(second)]
    if max(map(abs, parts)) < 1 - 1e-6:  # near 1 the rule magnifies rounding
        assert combine(parts) == pytest.approx(combine(first + second), abs=1e-6)


def test_many_weak_scores_saturate_but_do_not_overflow() -> None:
    assert combine([0.1] * 5) == pytest.approx(1 - 0.9**5)
    assert combine([0.9] * 10_000) == 1.0
    assert not math.isnan(combine([0.9] * 10_000 + [-0.9] * 10_000))


def test_many_groups_agree_with_the_pairwise_rule(rng: np.random.Generator) -> None:
    scores, groups = rng.uniform(-0.9, 0.9, 2_000), rng.integers(0, 300, 2_000)
    factors = certainty_factor(scores, groups, 300)
    for group in range(0, 300, 37):
        group_scores = scores[groups == group].tolist()
        assert factors[group] == pytest.approx(
            fold_scores(group_scores) if group_scores else 0.0, abs=1e-9
        )
