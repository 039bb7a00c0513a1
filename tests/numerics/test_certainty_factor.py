from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.numerics.certainty_factor import certainty_factor

OPEN = st.floats(-0.99, 0.99).filter(lambda each: each == 0 or abs(each) > 1e-6)
ANY = st.one_of(OPEN, st.sampled_from([-1.0, 1.0]))


def together(scores: list[float]) -> float:
    return float(certainty_factor(scores, [0] * len(scores), 1)[0])


def folded(scores: list[float]) -> float:
    """The rule as it is written, score after score."""
    found = scores[0]
    for each in scores[1:]:
        if found >= 0 and each >= 0:
            found = found + each - found * each
        elif found <= 0 and each <= 0:
            found = found + each + found * each
        else:
            found = (found + each) / (1 - min(abs(found), abs(each)))
    return found


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
def test_the_rule_by_hand(scores: list[float], expected: float) -> None:
    assert together(scores) == pytest.approx(expected, abs=1e-12)


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
def test_what_is_certain_stays_certain(scores: list[float], expected: float) -> None:
    for order in permutations(scores):
        assert together(list(order)) == expected


def test_groups_do_not_mix_and_those_without_a_score_are_0() -> None:
    found = certainty_factor([0.5, -0.5, 0.6], [2, 0, 2], 4)
    assert found == pytest.approx([-0.5, 0.0, 0.8, 0.0])
    assert certainty_factor([], []).size == 0
    assert certainty_factor([], [], 2).tolist() == [0.0, 0.0]


@given(st.lists(OPEN, min_size=1, max_size=8))
def test_it_is_the_fold(scores: list[float]) -> None:
    assert together(scores) == pytest.approx(folded(scores), abs=1e-9)


@given(st.lists(ANY, max_size=12), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_it_stays_in_range(scores: list[float], chance: object) -> None:
    shuffled = sorted(scores, key=lambda _: chance.random())  # type: ignore[attr-defined]
    assert together(shuffled) == pytest.approx(together(scores), abs=1e-12)
    assert -1 <= together(scores) <= 1


@given(st.lists(ANY, max_size=8))
def test_zero_is_neutral_and_turning_all_scores_turns_the_sign(scores: list[float]) -> None:
    assert together([*scores, 0.0]) == together(scores)
    assert together([-each for each in scores]) == -together(scores)


@given(st.lists(OPEN, min_size=1, max_size=5), st.lists(OPEN, min_size=1, max_size=5))
def test_parts_can_be_combined_first(first: list[float], second: list[float]) -> None:
    parts = [together(first), together(second)]
    if max(map(abs, parts)) < 1 - 1e-6:  # near 1 the rule magnifies rounding
        assert together(parts) == pytest.approx(together(first + second), abs=1e-6)


def test_many_weak_scores_saturate_but_do_not_overflow() -> None:
    assert together([0.1] * 5) == pytest.approx(1 - 0.9**5)
    assert together([0.9] * 10_000) == 1.0
    assert not math.isnan(together([0.9] * 10_000 + [-0.9] * 10_000))


def test_it_agrees_with_the_fold_on_many_groups(rng: np.random.Generator) -> None:
    scores, groups = rng.uniform(-0.9, 0.9, 2_000), rng.integers(0, 300, 2_000)
    found = certainty_factor(scores, groups, 300)
    for group in range(0, 300, 37):
        own = scores[groups == group].tolist()
        assert found[group] == pytest.approx(folded(own) if own else 0.0, abs=1e-9)
