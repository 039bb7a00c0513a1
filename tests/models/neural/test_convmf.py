from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.data.movielens import MovieLens1M
from recbias.models.convmf import ConvMF
from support.models.recommending import compute_mean_ndcg, make_checkerboard, query_all_users
from support.worlds.attribute_worlds import make_item_data
from support.worlds.small_worlds import make_interactions

SMALL = ConvMF(
    text=("text",),
    embedding_size=8,
    epochs=30,
    batch_size=64,
    learning_rate=0.02,
    reg_user=0.5,
    reg_item=0.5,
    word_size=8,
    filters=4,
    windows=(1, 2),
    device="cpu",
)
ELLIOT = replace(SMALL, variant="elliot", embedding_size=16)


def make_colours(template: str = "{}") -> TrainingData:
    """Return users who like red or blue items. The text of an item names its colour.

    Each of the last 20 items has one user only, who likes the other colour.
    """
    rng = np.random.default_rng(3)
    pairs = [
        (u, i) for u in range(40) for i in range(40) if (u + i) % 2 == 0 and rng.random() < 0.6
    ]
    pairs += [(i - 39, i) for i in range(40, 60)]
    names = [template.format(["red", "blue"][i % 2]) for i in range(60)]
    return make_item_data(
        pairs, {"text": [f"a {name} thing {i % 7}" for i, name in enumerate(names)]}
    )


def rank_by_colour(data: TrainingData) -> float:
    """Return how often rare items of the own colour score above those of the other colour."""
    model = replace(SMALL, reg_item=20.0, epochs=40)
    fitted: Any = model.fit(data, np.random.default_rng(0))
    scores = fitted.scores(np.arange(40, dtype=np.int32))[:, 40:]
    red, blue = scores[:, 0::2], scores[:, 1::2]
    above = (red[:, :, None] > blue[:, None, :]).mean(axis=(1, 2))
    return float(np.where(np.arange(40) % 2 == 0, above, 1 - above).mean())


def test_text_predicts_who_likes_a_rare_item() -> None:
    assert rank_by_colour(make_colours()) > 0.9
    assert rank_by_colour(make_colours(template="grey")) < 0.6


def test_elliot_ranks_items_alike_for_all_users_without_text() -> None:
    data = TrainingData(
        make_interactions([(u, i) for u in range(12) for i in range(8) if i <= u % 6 + 1])
    )
    fitted: Any = replace(ELLIOT, epochs=60).fit(data, np.random.default_rng(0))
    assert (
        fitted.item_scores[:2].min() > fitted.item_scores[2:].max()
    )  # all users have items 0 and 1
    assert fitted.embeddings().users.shape == (12, 16)


def test_elliot_requires_a_multiple_of_16_as_embedding_size() -> None:
    with pytest.raises(OutOfRange, match="embedding_size 24") as caught:
        replace(ELLIOT, embedding_size=24).fit(make_checkerboard(4)[0], np.random.default_rng(0))
    assert caught.value.where == "embedding_size"
    assert "multiple of 16" in caught.value.remedy


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("model", "low", "high"),
    [
        (ConvMF(epochs=3, device="cpu"), 0.2, 0.31),
        # Table A.3: 0.1563, after 50 epochs in batches of 256
        (
            ConvMF(
                variant="elliot",
                embedding_size=64,
                epochs=1,
                batch_size=2048,
                learning_rate=0.01,
                dropout=0.3,
                device="cpu",
            ),
            0.12,
            0.1763,
        ),
    ],
    ids=["paper", "elliot"],
)
@pytest.mark.slow
def test_ndcg_on_movielens(
    model: ConvMF, low: float, high: float, movielens: Split, real_data: Any
) -> None:
    items = MovieLens1M().load(real_data, np.random.default_rng(0)).items
    assert items is not None
    data = movielens.training_data(items=items.align(movielens.train.item_ids))
    lists = model.fit(data, np.random.default_rng(0)).recommend(query_all_users(data), 10, data)
    assert low < compute_mean_ndcg(lists, movielens) < high
