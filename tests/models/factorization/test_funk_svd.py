from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recbias.core.dataset import Split, TrainingData
from recbias.models.factorization import MF, FunkSVD
from support.models import recommending
from support.worlds.small_worlds import make_interactions

FUNK = FunkSVD(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu")
MODELS: list[Any] = [
    MF(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu"),
    FUNK,
    replace(FUNK, variant="elliot", epochs=150),
    MF(variant="elliot", embedding_size=8, epochs=150, batch_size=64, learning_rate=0.02),
]


def sample_low_rank_ratings(rng: np.random.Generator) -> tuple[TrainingData, Any]:
    """Sample ratings of rank 1 with biases: four fifths of them as training data, and all."""
    tastes = np.outer(rng.normal(size=40), rng.normal(size=30))
    ratings = 3 + tastes + rng.normal(size=(40, 1)) / 2 + rng.normal(size=30) / 2
    users, items = np.nonzero(rng.random(ratings.shape) < 0.8)
    pairs = list(zip(users.tolist(), items.tolist(), strict=True))
    return TrainingData(make_interactions(pairs, values=ratings[users, items].tolist())), ratings


@pytest.mark.parametrize("model", MODELS[:2], ids=["MF", "FunkSVD"])
def test_ratings_are_learned(model: Any, rng: np.random.Generator) -> None:
    data, ratings = sample_low_rank_ratings(rng)
    model = replace(model, embedding_size=3, reg=0.001)
    scores = model.fit(data, np.random.default_rng(0)).scores(np.arange(40, dtype=np.int32))
    unseen = data.train.binary.toarray() == 0
    # terms that are the same for all items of a user are not part of the score
    gaps = ratings - scores
    gaps -= gaps.mean(axis=1, keepdims=True)
    centred = ratings - ratings.mean(axis=1, keepdims=True)
    assert gaps[unseen].std() < 0.4 * centred[unseen].std()


@pytest.mark.slow
@pytest.mark.real_data
def test_ndcg_on_movielens_exceeds_a_minimum(movielens: Split) -> None:
    # a quarter of the default epochs, and above the 0.2388 of MF in Table A.3
    data = movielens.training_data()
    fitted = MF(epochs=20, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.25


all_variants = pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.variant}"
)


@all_variants
def test_checkerboard_pattern_is_learned(model: Any) -> None:
    data, missing = recommending.make_checkerboard(20)
    fitted = model.fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == missing).mean() > 0.8
