from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import Split, TrainingData
from recbias.models import training
from recbias.models.factorization import MF, FactorTables, FunkSVD, _sum_squared_errors
from support.models import recommending
from support.worlds.small_worlds import make_interactions

FUNK = FunkSVD(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu")
MODELS: list[Any] = [
    MF(embedding_size=8, epochs=50, batch_size=64, learning_rate=0.02, device="cpu"),
    FUNK,
    replace(FUNK, variant="elliot", epochs=150),
    MF(variant="elliot", embedding_size=8, epochs=150, batch_size=64, learning_rate=0.02),
]


def sample_tensor(*shape: int, rng: np.random.Generator) -> Any:
    return torch.tensor(rng.normal(size=shape), requires_grad=True)


def test_gradients_match_finite_differences(rng: np.random.Generator) -> None:
    pairs = [torch.tensor([0, 0, 2]), torch.tensor([1, 3, 1]), torch.tensor([1.0, 0.0, 0.5])]

    def loss(*tables: Any) -> Any:
        return _sum_squared_errors(FactorTables(*tables), 0.3, *pairs, mean=0.4)

    sides = [sample_tensor(n_rows, 2, rng=rng) for n_rows in (3, 4)]
    biases = [sample_tensor(n_rows, 1, rng=rng) for n_rows in (3, 4)]
    assert torch.autograd.gradcheck(loss, (*sides, *biases))


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


@pytest.mark.parametrize("model", [MF, FunkSVD])
def test_batch_steps_learn_the_checkerboard(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_steps_by_samples", lambda *_: False)
    test_checkerboard_pattern_is_learned(replace(MODELS[model is FunkSVD], batch_size=16))
