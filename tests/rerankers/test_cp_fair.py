"""CPFair against all lists of small problems, and a case worked by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from recbias.core.errors import NothingLeft
from recbias.core.models.rerankers import Candidates
from recbias.core.stage_context import collect_facts
from recbias.rerankers.cp_fair import CPFair
from support.worlds.candidate_worlds import make_candidates

# item 0 is in four histories, item 1 in three; the head of 20% of ten items is these two
HISTORIES = [[0, 1, 2, 3], [0, 1], [0, 1], [0]]
LISTS = [[0, 1, 4, 5], [0, 4, 1, 5], [1, 0, 6, 7], [0, 1, 8, 9]]


def compute_objective(
    candidates: Candidates, lists: Any, settings: CPFair, target: float
) -> float:
    """Return the objective of the docstring for positions, query 0 being the active one."""
    k = len(lists[0])
    utilities = np.array(
        [sum(row[list(at)]) / k for row, at in zip(candidates.scores, lists, strict=True)]
    )
    items = np.array([row[list(at)] for row, at in zip(candidates.items, lists, strict=True)])
    tail = abs(np.mean(items > 1) - target)
    gap = abs(utilities[0] - utilities[1:].mean())
    weight = settings.user_weight
    unfair = (1 - weight) * tail + weight * gap
    return float((1 - settings.strength) * utilities.mean() - settings.strength * unfair)


def rerank(candidates: Candidates, k: int, **settings: Any) -> tuple[Any, float]:
    with collect_facts() as facts:
        positions = CPFair(active=0.25, **settings).rerank(candidates, k)
    distance = facts["distance_to_bound"]
    assert isinstance(distance, float)
    return positions, distance


def test_the_tail_gets_its_share_at_the_lowest_loss_of_score() -> None:
    scores = [[1, 0.9, 0.5, 0], [1, 0.7, 0.6, 0], [1, 0.8, 0.1, 0], [1, 0.9, 0.2, 0]]
    candidates = make_candidates(LISTS, HISTORIES, scores)
    # of the eight positions of two items each, one is tail: item 4 of the second list. For two
    # of eight, item 4 takes the place of item 1 in the first list, which loses 0.4; in the third
    # and the last list 0.7 would be lost
    positions, _ = rerank(candidates, 2, strength=0.9, user_weight=0, tail_share=2 / 8)
    assert positions.tolist() == [[0, 2], [0, 1], [0, 1], [0, 1]]
    # with a small strength it is not worth it: 0.8 * 0.4 / 8 is lost, 0.2 / 8 gained
    positions, _ = rerank(candidates, 2, strength=0.2, user_weight=0, tail_share=2 / 8)
    assert positions.tolist() == [[0, 1]] * 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_the_objective_is_within_the_bound_of_the_best_lists(seed: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.random((3, 4)), axis=1)
    candidates = make_candidates(LISTS[:3], HISTORIES[:3], scores.tolist())
    pairs = list(itertools.combinations(range(4), 2))
    for strength in (0.1, 0.5):
        settings = CPFair(strength=strength, user_weight=weight, active=0.25)
        found, distance = rerank(candidates, 2, strength=strength, user_weight=weight)
        exact = max(
            compute_objective(candidates, lists, settings, 0.8)
            for lists in itertools.product(pairs, repeat=3)
        )
        value = compute_objective(candidates, found.tolist(), settings, 0.8)
        plain = compute_objective(candidates, [[0, 1]] * 3, settings, 0.8)
        assert plain - 1e-9 <= value <= exact + 1e-9
        assert exact <= value + distance + 1e-6


def test_without_strength_lists_are_those_of_the_model() -> None:
    candidates = make_candidates(LISTS, HISTORIES)
    positions, distance = rerank(candidates, 3, strength=0)
    assert positions.tolist() == [[0, 1, 2]] * 4
    assert distance == 0


def test_short_lists_stay_short() -> None:
    lists = [[0, 1, 4, -1], [4, -1, -1, -1], [0, 11, 5, -1], [0, 1, 4, 5]]
    positions, _ = rerank(make_candidates(lists, HISTORIES), 3, strength=0.5)
    assert positions.tolist()[1] == [0, -1, -1]
    assert (positions[0] >= 0).all()


def test_one_group_of_users_is_refused() -> None:
    candidates = make_candidates([[0, 1]], [[2]])
    with pytest.raises(NothingLeft, match="1 of 1 queries are active"):
        CPFair().rerank(candidates, 1)
    assert CPFair(user_weight=0).rerank(candidates, 1).shape == (1, 1)
