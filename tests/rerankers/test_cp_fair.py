"""CPFair against all lists of small problems, a linear programme, and cases worked by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_facts
from recbias.core.plugins import Candidates
from recbias.rerankers.fair import CPFair
from support.worlds.candidate_worlds import make_candidates

# item 0 is in four histories, item 1 in three; the head of 20% of ten items is these two
HISTORIES = [[0, 1, 2, 3], [0, 1], [0, 1], [0]]
LISTS = [[0, 1, 4, 5], [0, 4, 1, 5], [1, 0, 6, 7], [0, 1, 8, 9]]


def compute_objective(candidates: Candidates, lists: Any, cp_fair: CPFair, target: float) -> float:
    """Return the objective of the docstring for positions, query 0 being the active one."""
    k = len(lists[0])
    utilities = np.array(
        [sum(row[list(at)]) / k for row, at in zip(candidates.scores, lists, strict=True)]
    )
    items = np.array([row[list(at)] for row, at in zip(candidates.items, lists, strict=True)])
    tail = abs(np.mean(items > 1) - target)
    gap = abs(utilities[0] - utilities[1:].mean())
    weight = cp_fair.user_weight
    unfair = (1 - weight) * tail + weight * gap
    return float((1 - cp_fair.strength) * utilities.mean() - cp_fair.strength * unfair)


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


def test_the_difference_of_users_is_closed_at_its_critical_multiplier() -> None:
    scores = [[1, 0.75, 0.5, 0], *[[1, 0.5, 0.25, 0]] * 3]
    candidates = make_candidates(LISTS, HISTORIES, scores)
    # the active query has a mean of 0.875, the others 0.75. Up to the multiplier at which the
    # scores of the active query count 0 its list is the best one, above it the worst, 0.5 and 0.
    # One exchange, 0.75 for 0.5, makes its mean 0.75: 0.1 * 0.125 / 4 is lost, 0.9 * 0.125 gained
    positions, distance = rerank(candidates, 2, strength=0.9, user_weight=1)
    assert positions.tolist() == [[0, 2], [0, 1], [0, 1], [0, 1]]
    assert distance == pytest.approx(0, abs=1e-6)


def test_a_share_that_no_multiplier_gives_is_reached_by_exchanges() -> None:
    # scores do not count, so a multiplier below 0 fills all lists from the tail, one above 0 none
    candidates = make_candidates(LISTS, HISTORIES)
    positions, distance = rerank(candidates, 2, strength=1, user_weight=0, tail_share=3 / 8)
    items = np.take_along_axis(candidates.items, positions, axis=1)
    assert (items > 1).sum() == 3
    assert distance == pytest.approx(0, abs=1e-9)


def make_world(seed: int, n_users: int, n: int) -> Candidates:
    """Return random candidates of users, of whom the first quarter has the longest histories."""
    rng = np.random.default_rng(seed)
    is_active = np.arange(n_users) < n_users // 4
    histories = [[0, 1, 2, 3] if active else [0, 1] for active in is_active]
    lists = [rng.permutation(10)[:n].tolist() for _ in range(n_users)]
    scores = -np.sort(-(rng.random((n_users, n)) ** np.where(is_active, 0.5, 2.0)[:, None]))
    return make_candidates(lists, histories, scores.tolist())


def solve(candidates: Candidates, k: int, cp_fair: CPFair, *, whole: bool) -> float:
    """Return the best objective by HiGHS, of lists or (not ``whole``) of parts of items."""
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array, hstack, kron

    scores, items = candidates.scores, candidates.items
    q, n = scores.shape
    n_active, weight, strength = q // 4, cp_fair.user_weight, cp_fair.strength
    signs = np.where(np.arange(q) < n_active, 1 / n_active, -1 / (q - n_active))
    tail = (items > 1).ravel() / (q * k)
    users = (scores * signs[:, None]).ravel() / k
    # the last two variables are at least the differences of users and of items
    gains = (1 - strength) * scores.ravel() / (q * k)
    gains = np.append(gains, [-strength * weight, -strength * (1 - weight)])
    sums = hstack([kron(np.eye(q), np.ones((1, n))), csr_array((q, 2))])
    share = cp_fair.tail_share or 0.8
    columns = ((users, [-1, 0]), (tail, [0, -1]))
    rows = np.stack(
        [np.append(sign * column, ends) for column, ends in columns for sign in (1, -1)]
    )
    result = milp(
        -gains,
        integrality=np.append(np.full(q * n, int(whole)), [0, 0]),
        bounds=(0, np.append(np.ones(q * n), [np.inf, np.inf])),
        constraints=[
            LinearConstraint(sums, k, k),
            LinearConstraint(rows, -np.inf, [0, 0, share, -share]),
        ],
    )
    assert result.success
    return float(-result.fun)


def measure(candidates: Candidates, positions: Any, cp_fair: CPFair) -> float:
    scores = np.take_along_axis(candidates.scores, positions, axis=1).mean(axis=1)
    tail = np.mean(np.take_along_axis(candidates.items, positions, axis=1) > 1)
    n_active = len(scores) // 4
    gap = abs(scores[:n_active].mean() - scores[n_active:].mean())
    weight, strength = cp_fair.user_weight, cp_fair.strength
    unfair = weight * gap + (1 - weight) * abs(tail - (cp_fair.tail_share or 0.8))
    return float((1 - strength) * scores.mean() - strength * unfair)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_bound_is_the_linear_programme_and_lists_of_many_reach_it(weight: float) -> None:
    candidates = make_world(1, 200, 8)
    cp_fair = CPFair(strength=0.6, user_weight=weight, active=0.25, tail_share=0.6)
    positions, distance = rerank(candidates, 3, strength=0.6, user_weight=weight, tail_share=0.6)
    value = measure(candidates, positions, cp_fair)
    assert value + distance == pytest.approx(solve(candidates, 3, cp_fair, whole=False), abs=2e-4)
    assert distance < 0.003


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_the_objective_is_within_the_bound_of_the_best_lists(seed: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.random((3, 4)), axis=1)
    candidates = make_candidates(LISTS[:3], HISTORIES[:3], scores.tolist())
    pairs = list(itertools.combinations(range(4), 2))
    for strength in (0.1, 0.5):
        cp_fair = CPFair(strength=strength, user_weight=weight, active=0.25)
        found, distance = rerank(candidates, 2, strength=strength, user_weight=weight)
        exact = max(
            compute_objective(candidates, lists, cp_fair, 0.8)
            for lists in itertools.product(pairs, repeat=3)
        )
        value = compute_objective(candidates, found.tolist(), cp_fair, 0.8)
        plain = compute_objective(candidates, [[0, 1]] * 3, cp_fair, 0.8)
        assert plain - 1e-9 <= value <= exact + 1e-9
        assert exact <= value + distance + 1e-6


def test_without_strength_lists_are_those_of_the_model() -> None:
    candidates = make_candidates(LISTS, HISTORIES)
    positions, distance = rerank(candidates, 3, strength=0)
    assert positions.tolist() == [[0, 1, 2]] * 4
    assert distance == 0
