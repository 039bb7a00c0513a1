from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.dataset import FloatArray
from recbias.metrics import accuracy

SCORES: dict[str, Callable[..., FloatArray]] = {
    name.removeprefix("_"): getattr(accuracy, name)
    for name in (
        *("_ndcg", "_hit_rate", "_reciprocal_rank", "average_precision", "_mean_precision"),
        *("_precision", "_recall", "_r_precision", "_f1"),
    )
}


def score_list(name: str, hits: list[int], n_relevant: int, k: int) -> float:
    scores = SCORES[name](np.array([hits], dtype=bool), np.array([n_relevant]), k)
    return float(scores[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # list: miss, hit, miss, hit; three test items; k = 4
        # DCG 1/log2(3) + 1/log2(5) = 0.630930 + 0.430677 = 1.061606
        # ideal 1 + 0.630930 + 0.5 = 2.130930
        ("ndcg", 1.061606 / 2.130930),
        ("hit_rate", 1.0),
        ("reciprocal_rank", 1 / 2),
        ("average_precision", (1 / 2 + 2 / 4) / 3),
        ("mean_precision", (0 + 1 / 2 + 1 / 3 + 2 / 4) / 4),
        ("precision", 2 / 4),
        ("recall", 2 / 3),
        ("r_precision", 1 / 3),  # one hit among the first three
        ("f1", 2 * (2 / 4) * (2 / 3) / (2 / 4 + 2 / 3)),
    ],
)
def test_score_of_a_list_with_two_hits(name: str, expected: float) -> None:
    assert score_list(name, [0, 1, 0, 1], 3, 4) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # the list ends after two ranks, both hits; five test items; k = 4
        # ideal of 4: 2.130930 + 0.430677 = 2.561606
        ("ndcg", (1 + 0.630930) / 2.561606),
        ("average_precision", 2 / 4),  # min(5, 4)
        ("mean_precision", (1 + 1 + 2 / 3 + 2 / 4) / 4),
        ("precision", 2 / 4),
        ("recall", 2 / 5),
        ("r_precision", 2 / 5),
        ("f1", 4 / 9),
    ],
)
@pytest.mark.parametrize("padding", [[], [0, 0]])
def test_missing_ranks_of_a_short_list_are_misses(
    name: str, expected: float, padding: list[int]
) -> None:
    assert score_list(name, [1, 1, *padding], 5, 4) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", SCORES)
def test_hits_after_the_cutoff_do_not_count(name: str) -> None:
    assert score_list(name, [0, 1, 0, 1, 1], 2, 3) == score_list(name, [0, 1, 0], 2, 3)


@pytest.mark.parametrize("name", SCORES)
def test_queries_without_test_items_are_nan_and_lists_without_hits_zero(name: str) -> None:
    hits = np.zeros((2, 3), dtype=bool)
    scores = SCORES[name](hits, np.array([0, 2]), 3)
    assert math.isnan(scores[0])
    assert scores[1] == 0


@pytest.mark.parametrize("name", SCORES)
def test_empty_lists_are_zero(name: str) -> None:
    assert score_list(name, [], 2, 3) == 0


@pytest.mark.parametrize("name", SCORES)
def test_no_queries_give_no_values(name: str) -> None:
    assert SCORES[name](np.empty((0, 3), dtype=bool), np.empty(0, dtype=np.int64), 3).shape == (0,)


@pytest.mark.parametrize("name", SCORES)
@given(hits=st.lists(st.booleans(), min_size=1, max_size=12), more=st.integers(0, 5))
def test_every_score_is_between_zero_and_score_list(
    name: str, hits: list[bool], more: int
) -> None:
    n_relevant = sum(hits) + more
    k = len(hits)
    score = score_list(name, [int(hit) for hit in hits], n_relevant, k)
    assert math.isnan(score) if n_relevant == 0 else 0 <= score <= 1 + 1e-15


@pytest.mark.parametrize("name", ["ndcg", "hit_rate", "reciprocal_rank", "average_precision"])
@pytest.mark.parametrize(("n_relevant", "k"), [(1, 3), (3, 3), (9, 3), (2, 5)])
def test_a_perfect_list_is_score_list(name: str, n_relevant: int, k: int) -> None:
    hits = [1] * min(n_relevant, k) + [0] * (k - min(n_relevant, k))
    assert score_list(name, hits, n_relevant, k) == 1.0
