"""Cases worked by hand, and input that does not fit."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from recbias.core.context import collect_facts, collect_warnings
from recbias.core.errors import OutOfRange, UnknownColumn, UserError
from recbias.core.plugins import Candidates
from recbias.rerankers.fair import (
    FAIR,
    CPFair,
    DetGreedy,
    adjust_alpha,
    compute_minimum,
    compute_rejection,
)
from recbias.rerankers.relevance import CalibratedPopularity, Calibration, group_by_popularity
from support.worlds.candidate_worlds import make_candidates

GENRES = ("a", "a", "a", "b", "b", None, "a|b", "c", "c", "a")


def select(reranker: Any, candidates: Candidates, k: int) -> list[list[int]]:
    """Return the items that a re-ranker selects, -1 for none."""
    positions = reranker.rerank(candidates, k)
    items = np.take_along_axis(candidates.lists.items, np.maximum(positions, 0), axis=1)
    lists: list[list[int]] = np.where(positions < 0, -1, items).tolist()
    return lists


def test_a_query_without_a_history_with_values_keeps_its_list() -> None:
    lists = [[0, 1, 3], [0, 1, 3], [3, 0, 1]]
    candidates = make_candidates(lists, [[], [5], [9]], genres=GENRES)
    with collect_warnings() as warnings:
        found = select(Calibration(attribute="genres", strength=1), candidates, 2)
    assert found == [[0, 1], [0, 1], [0, 1]]
    assert warnings == ["2 of 3 queries have no history with a value: not re-ranked"]


def test_groups_of_popularity_hold_their_shares() -> None:
    # counts 4, 3, 2, 1 of items 0 to 3: the head at 0.4 is item 0, the tail at 0.1 item 3
    histories = [[0, 1, 2, 3], [0, 1, 2], [0, 1], [0]]
    data = make_candidates([[0]] * 4, histories, genres=["a"] * 4).data
    groups = group_by_popularity(data, 0.4, 0.1)
    assert groups.names == ("head", "middle", "tail")
    assert groups.codes[:-1, 0].tolist() == [0, 1, 1, 2]
    # user 3 knows popular items only
    candidates = make_candidates([[3, 1, 0]] * 4, histories, genres=["a"] * 4)
    listed = select(CalibratedPopularity(strength=1, head=0.4, tail=0.1), candidates, 1)
    assert listed[3] == [0]


def test_fa_ir_moves_protected_items_up_where_a_test_would_reject() -> None:
    candidates = make_candidates([[0, 1, 2, 9, 3, 4]], [[8]], genres=GENRES)
    fair = FAIR(attribute="genres", protected="b", share=0.5, adjust=False)
    # without adjustment m = 0, 0, 0, 1, 1, 1 for p = 0.5 and alpha = 0.1
    assert select(fair, candidates, 6) == [[0, 1, 2, 3, 9, 4]]
    # a fair list has none in its first four with the probability 1/16, which is below 0.1 already
    assert select(replace(fair, adjust=True), candidates, 6) == [[0, 1, 2, 3, 9, 4]]
    # at 0.05 the first is due at rank 5, as four in a row without one have 0.0625
    assert select(replace(fair, alpha=0.05), candidates, 5) == [[0, 1, 2, 9, 3]]


def test_fa_ir_counts_lists_with_too_few_protected_candidates() -> None:
    candidates = make_candidates([[0, 1, 2, 9], [0, 1, 3, 4]], [[8], [8]], genres=GENRES)
    with collect_warnings() as warnings:
        lists = select(FAIR(attribute="genres", protected="b", share=0.5), candidates, 4)
    assert lists[0] == [0, 1, 2, 9]
    assert warnings == ["1 of 2 queries have too few protected candidates"]


PRICES = ("1", "1", "1", "2", None, "2")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"1": 0.0, "2": 1.0}, [3, 0, 1, 2, 4]),
        ({"1": 0.5, "2": 0.5}, [0, 3, 1, 2, 4]),
        # what is left of 1 goes to price 1 and no price as 3 : 1, here 0.375 and 0.125; at rank 4
        # price 1 has its ceil(1.5) places already, price 2 has no item left, and 4 no price
        ({"2": 0.5}, [0, 3, 1, 4, 2]),
        ({"1": 0.5, "2": 0.0}, [0, 4, 1, 2, 3]),
        # 3/5 of the items with training rows cost 1, 1/5 cost 2, 1/5 have no price
        ("catalogue", [0, 1, 3, 2, 4]),
    ],
)
def test_det_greedy_reaches_target_shares(
    target: Literal["catalogue"] | Mapping[str, float], expected: list[int]
) -> None:
    candidates = make_candidates([[0, 1, 2, 3, 4]], [[0, 1, 2, 3, 4]], price=PRICES)
    assert select(DetGreedy(attribute="price", target=target), candidates, 5) == [expected]


@pytest.mark.parametrize(
    ("reranker", "kind", "where"),
    [
        (Calibration(attribute="genre"), UnknownColumn, "attribute"),
        (FAIR(attribute="genres", protected="z"), UnknownColumn, "protected"),
        (DetGreedy(attribute="genres"), UnknownColumn, "attribute"),
        (DetGreedy(attribute="price", target={"5": 0.1}), UnknownColumn, "target"),
        (DetGreedy(attribute="full", target={"1": 0.6, "2": 0.3}), OutOfRange, "target"),
    ],
)
def test_settings_that_do_not_fit_the_items_are_errors_before_training(
    reranker: Any, kind: type[UserError], where: str
) -> None:
    columns: dict[str, Any] = {
        "genres": GENRES[:7],
        "blank": [None] * 7,
        "price": (*PRICES, None),
        "full": ["1", "2"] * 3 + ["1"],
    }
    data = make_candidates([[0]], [[0, 1]], **columns).data
    with pytest.raises(kind) as caught:
        reranker.check_data(data)
    assert caught.value.where == where
    assert caught.value.remedy


def test_scores_are_scaled_and_ranks_stand_in_for_missing_ones() -> None:
    lists = [[0, 1, 2], [0, 1, -1], [0, 1, 2]]
    scores = [[5.0, 4.0, 1.0], [2.0, 2.0, 0.0], [np.nan] * 3]
    candidates = make_candidates(lists, [[3]] * 3, scores)
    np.testing.assert_allclose(
        candidates.scores, [[1, 0.75, 0], [1, 1, np.nan], [1, 2 / 3, 1 / 3]], rtol=1e-6
    )


# table 2 of Zehlike et al. 2017: m(r) for alpha = 0.1 and r = 1 to 12
PUBLISHED = {
    0.1: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    0.2: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    0.3: [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2],
    0.4: [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3],
    0.5: [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4],
    0.6: [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    0.7: [0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6],
}


@pytest.mark.parametrize("share", PUBLISHED)
def test_minimum_is_that_of_the_paper(share: float) -> None:
    assert compute_minimum(12, share, 0.1).tolist() == PUBLISHED[share]


def test_minimum_and_rejection_are_those_of_the_authors_package() -> None:
    # the documentation of fairsearchcore: k = 20, p = 0.25, alpha = 0.1
    unadjusted = [0] * 8 + [1] * 6 + [2] * 5 + [3]
    assert compute_minimum(20, 0.25, 0.1).tolist() == unadjusted
    adjusted = np.array([0] * 8 + [1] * 7 + [2] * 5)
    assert compute_rejection(adjusted, 0.25) == pytest.approx(0.10515247355215251, rel=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_rejection_is_that_over_all_lists(share: float) -> None:
    minimum = compute_minimum(10, share, 0.2)
    rejected = 0.0
    for members in itertools.product((0, 1), repeat=10):
        if (np.cumsum(members) < minimum).any():
            rejected += share ** sum(members) * (1 - share) ** (10 - sum(members))
    assert compute_rejection(minimum, share) == pytest.approx(rejected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 5, 12, 40])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_adjusted_level_is_the_largest_that_keeps_the_limit(k: int, share: float) -> None:
    alpha = adjust_alpha(k, share, 0.1)
    assert 0 < alpha <= 0.1
    assert compute_rejection(compute_minimum(k, share, alpha), share) <= 0.1
    if alpha < 0.1:  # the next larger level changes the minimum, and breaks the limit
        larger = compute_minimum(k, share, np.nextafter(alpha, 1.0))
        assert compute_rejection(larger, share) > 0.1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_0_or_1_needs_none_or_all(share: float) -> None:
    minimum = compute_minimum(4, share, adjust_alpha(4, share, 0.1))
    assert minimum.tolist() == ([0] * 4 if share == 0 else [1, 2, 3, 4])


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
