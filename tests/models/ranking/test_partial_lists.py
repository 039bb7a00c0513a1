"""Lists are stored as they come: an interrupted stage ranks only those that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import AnyArray
from recbias.core.evidence import RankedLists
from recbias.models import ranking as score_blocks
from recbias.models.gpu import Ranking
from recbias.models.ranking import rank_by_scores
from support.models.checkpoints import Interrupted, MemoryStore, save_always
from support.models.recommending import make_random_data, query_all_users

Rank = Callable[[Callable[[AnyArray], AnyArray], AnyArray], RankedLists]


@pytest.fixture(autouse=True)
def save_after_each_block(monkeypatch: pytest.MonkeyPatch) -> None:
    save_always(monkeypatch)


@pytest.fixture(params=["processor", "device"])
def rank(request: pytest.FixtureRequest, rng: np.random.Generator) -> Rank:
    """Ranks with a function of users, in blocks of eight."""
    data = make_random_data(rng)
    queries, n_bytes = query_all_users(data), 8 * data.train.n_items

    def rank_on_processor(score: Any, scores: AnyArray) -> RankedLists:
        limit = n_bytes * score_blocks.BYTES_PER_SCORE * 2
        return rank_by_scores(
            lambda users: score(scores[users]), queries, 5, data, memory_limit=limit
        )

    def rank_on_device(score: Any, scores: AnyArray) -> RankedLists:
        import torch

        ranking = Ranking(
            lambda state, users: score(state["scores"][users]),
            {"scores": scores},
            "cpu",
            memory_limit=n_bytes * score_blocks.BYTES_PER_SCORE,
        )
        return ranking.rank_on_device(torch.device("cpu"), queries, 5, data)

    return rank_on_processor if request.param == "processor" else rank_on_device


def test_an_interrupted_ranking_goes_on(rank: Rank, rng: np.random.Generator) -> None:
    scores = rng.random((60, 45), dtype=np.float32)
    n_ranked = 0

    def count(block: Any) -> Any:
        nonlocal n_ranked
        n_ranked += len(block)
        return block

    whole = rank(count, scores)
    n_all = n_ranked
    store = MemoryStore(2)
    with stage_context(checkpoint_store=store, writes_lists=True):
        with pytest.raises(Interrupted):
            rank(count, scores)
        assert store.arrays is not None
        n_stored, n_ranked = len(store.arrays["items"]), 0
        resumed = rank(count, scores)
    assert 0 < n_stored < n_all
    assert n_ranked == n_all - n_stored
    assert np.array_equal(resumed.items, whole.items)
    assert np.array_equal(resumed.scores, whole.scores, equal_nan=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda items, scores: (items[:, :3], scores[:, :3]),
        lambda items, scores: (np.tile(items, (9, 1)), np.tile(scores, (9, 1))),
        lambda items, scores: (items, scores[:-1]),
        lambda items, scores: (items.astype(np.float64), scores),
        lambda items, scores: (items.astype(str), scores),
        lambda items, scores: (items[0, 0], scores),
    ],
    ids=["shorter lists", "more lists", "missing scores", "numbers", "texts", "one item"],
)
def test_a_checkpoint_of_other_lists_is_not_used(
    rank: Rank, rng: np.random.Generator, change: Any
) -> None:
    scores = rng.random((60, 45), dtype=np.float32)
    whole, store = rank(lambda block: block, scores), MemoryStore()
    items, values = change(whole.items[:8], whole.scores[:8])
    store.arrays = {"items": items, "scores": values}
    with stage_context(checkpoint_store=store, writes_lists=True), collect_warnings() as warnings:
        resumed = rank(lambda block: block, scores)
    assert "the checkpoint holds other lists than these; all queries are ranked again" in warnings
    assert np.array_equal(resumed.items, whole.items)
    assert np.array_equal(resumed.scores, whole.scores, equal_nan=True)
