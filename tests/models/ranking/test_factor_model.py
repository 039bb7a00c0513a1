from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.protocols import HasEmbeddings, Storable
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.ranking.factor_model import FittedFactors, score_block
from recbias.models.ranking.score_blocks import BYTES_A_SCORE, RANKING_LIMIT
from support.asked import asked
from support.recommending import everybody
from support.worlds import rows

USERS = np.array([[1, 0], [2, 1], [np.nan, np.nan]], dtype=np.float32)
ITEMS = np.array([[1, 1], [0, 3], [2, 0], [np.nan, 0]], dtype=np.float32)
BIAS = np.array([0, 0, -4, 0], dtype=np.float32)


def world() -> TrainingData:
    return TrainingData(rows([(0, 3), (1, 0), (1, 1), (2, 2)], n_users=3, n_items=4))


@pytest.mark.parametrize(
    ("bias", "items", "scores"),
    [
        # u0 = (1, 0): i0 1, i1 0, i2 2;  u1 = (2, 1) has i0 and i1: i2 4
        (None, [[2, 0, 1], [2, -1, -1], [-1, -1, -1]], [[2, 1, 0], [4, np.nan, np.nan]]),
        (BIAS, [[0, 1, 2], [2, -1, -1], [-1, -1, -1]], [[1, 0, -2], [0, np.nan, np.nan]]),
    ],
)
def test_scores_are_products_and_nan_vectors_have_none(
    bias: np.ndarray | None, items: list[list[int]], scores: list[list[float]]
) -> None:
    lists = FittedFactors(USERS, ITEMS, bias).recommend(asked(["a", "b", "c"]), 3, world())
    assert lists.items.tolist() == items
    np.testing.assert_array_equal(lists.scores[:2], np.array(scores, dtype=np.float32))


@pytest.mark.parametrize("bias", [None, BIAS])
def test_the_state_is_all_there_is(bias: np.ndarray | None) -> None:
    fitted = FittedFactors(USERS, ITEMS, bias)
    assert isinstance(fitted, Storable)
    again = FittedFactors.restored(dict(fitted.state()))
    assert set(again.state()) == set(fitted.state())
    for name, array in fitted.state().items():
        np.testing.assert_array_equal(again.state()[name], array)


def test_they_are_ranked_on_the_device_that_they_were_made_on() -> None:
    fitted = FittedFactors(USERS, ITEMS, BIAS, "auto")
    assert FittedFactors.restored(fitted.state()).device == "cpu"
    assert FittedFactors.restored(fitted.state(), "auto").device == "auto"
    expected = FittedFactors(USERS, ITEMS, BIAS).recommend(asked(["a", "b", "c"]), 3, world())
    there = Ranking(score_block, fitted.state(), "cpu")
    found = there.lists_on(torch.device("cpu"), asked(["a", "b", "c"]), 3, world())
    assert np.array_equal(found.items, expected.items)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_vectors_are_embeddings() -> None:
    fitted = FittedFactors(USERS, ITEMS)
    assert isinstance(fitted, HasEmbeddings)
    assert fitted.embeddings().users is USERS
    assert fitted.embeddings().items is ITEMS


@pytest.fixture(scope="module")
def vast() -> TrainingData:
    """A million users by a hundred thousand items; every tenth user has an item."""
    names = [Vocabulary(np.arange(n).astype(str).astype(object)) for n in (1_000_000, 100_000)]
    items = np.arange(100_000, dtype=np.int32)
    return TrainingData(Interactions(items * 10, items, np.ones(items.size, "f4"), None, *names))


@pytest.mark.parametrize("spread", [1, 0], ids=["apart", "all alike"])
@pytest.mark.parametrize("place", ["arrays", "tensors"])
def test_no_score_matrix_is_held_whole(
    vast: TrainingData, rng: np.random.Generator, spread: int, place: str
) -> None:
    """All scores would take 400 GB, those of the users that are asked 160 MB."""
    sides = vast.train.n_users, vast.train.n_items
    p, q = (spread * rng.standard_normal((n, 4), dtype=np.float32) for n in sides)
    fitted, queries = FittedFactors(p, q), everybody(vast, list(range(0, 1_000_000, 2_500)))
    most = 0

    def watched(state: Mapping[str, Any], users: Any) -> Any:
        nonlocal most
        most = max(most, len(users))
        return score_block(state, users)

    ranking = Ranking(watched, fitted.state(), "cpu")
    fitted.recommend(queries.take(np.arange(1)), 10, vast)  # the training rows as a matrix
    tracemalloc.start()
    if place == "arrays":
        lists = ranking.lists(queries, 10, vast)
    else:
        lists = ranking.lists_on(torch.device("cpu"), queries, 10, vast)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < RANKING_LIMIT
    assert 0 < most * vast.train.n_items * BYTES_A_SCORE <= RANKING_LIMIT
    scores = q @ p[2_500]
    scores[250] = -np.inf
    first = np.argsort(-scores, kind="stable")[:10]
    assert lists.items[1].tolist() == first.tolist()
