from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.models import multivae
from recbias.models.multivae import FittedMultiVAE, MultiVAE
from support.models import recommending
from support.worlds.small_worlds import make_interactions

SMALL = MultiVAE(
    embedding_size=8,
    hidden_size=20,
    epochs=80,
    batch_size=8,
    learning_rate=0.01,
    anneal_steps=200,
    device="cpu",
)
ELLIOT = replace(SMALL, variant="elliot")


def fit_model(model: MultiVAE = SMALL) -> tuple[FittedMultiVAE, TrainingData]:
    data, _ = recommending.make_checkerboard(12)
    return replace(model, epochs=2).fit(data, np.random.default_rng(0)), data


@pytest.mark.usefixtures("stage_warnings")
def test_lists_rank_the_scores_of_the_latent_mean() -> None:
    fitted, data = fit_model()
    state = fitted.state()
    x = data.train.binary.toarray()
    x /= np.sqrt(x.sum(axis=1, keepdims=True))
    hidden = np.tanh(x @ state["encoder.0.weight"] + state["encoder.0.bias"])
    mean = (hidden @ state["encoder.1.weight"] + state["encoder.1.bias"])[:, :8]
    np.testing.assert_allclose(state["latent"], mean, rtol=1e-4, atol=1e-6)
    decoded = np.tanh(mean @ state["decoder.0.weight"] + state["decoder.0.bias"])
    scores = decoded @ state["decoder.1.weight"] + state["decoder.1.bias"]
    scores[x > 0] = -np.inf
    lists = fitted.recommend(recommending.query_all_users(data), 6, data)
    np.testing.assert_allclose(lists.scores, -np.sort(-scores, axis=1)[:, :6], rtol=1e-4)


@pytest.mark.usefixtures("stage_warnings")
def test_elliot_samples_latent_vectors_from_the_stored_seed() -> None:
    model = ELLIOT
    fitted, data = fit_model(model)
    queries = recommending.query_all_users(data)
    lists, repeated = (fitted.recommend(queries, 5, data) for _ in range(2))
    np.testing.assert_array_equal(lists.items, repeated.items)
    reseeded = replace(fitted, arrays={**fitted.arrays, "seed": fitted.arrays["seed"] + 1})
    assert not np.array_equal(lists.scores, reseeded.recommend(queries, 5, data).scores)
    restored = model.restore(fitted.state()).recommend(queries, 5, data)
    np.testing.assert_array_equal(lists.items, restored.items)
    assert "seed" not in fit_model()[0].state()


def test_lists_use_the_history_at_recommendation_time() -> None:
    # user 0 is trained with even items and then has a history of odd items
    data, _ = recommending.make_checkerboard(12)
    fitted = SMALL.fit(data, np.random.default_rng(0))
    pairs = [
        (user, item)
        for user, item in zip(data.train.users.tolist(), data.train.items.tolist(), strict=True)
        if user != 0
    ]
    new_data = TrainingData(make_interactions([(0, 1), (0, 3), (0, 5), (0, 7), *pairs]))
    lists = fitted.recommend(recommending.query_all_users(data, [0]), 2, new_data)
    assert set(lists.items[0].tolist()) == {9, 11}


@pytest.mark.usefixtures("stage_warnings")
def test_scores_are_products_of_embeddings_plus_bias() -> None:
    fitted, data = fit_model()
    vectors = fitted.embeddings()
    assert vectors.users is not None
    assert vectors.items is not None
    assert vectors.users.shape == (12, 20)
    scores = vectors.users @ vectors.items.T + fitted.state()["decoder.1.bias"]
    lists = fitted.recommend(recommending.query_all_users(data), 4, data)
    np.testing.assert_allclose(
        np.take_along_axis(scores, lists.items, 1), lists.scores, rtol=1e-4, atol=1e-6
    )


@pytest.mark.usefixtures("stage_warnings")
def test_scores_of_tensors_equal_scores_of_arrays() -> None:
    fitted, _ = fit_model()
    users = np.array([3, 1], dtype=np.int32)
    tensors = {name: torch.from_numpy(array) for name, array in fitted.state().items()}
    np.testing.assert_allclose(
        multivae.score_block(tensors, torch.from_numpy(users).long()).numpy(),
        multivae.score_block(fitted.state(), users),
        rtol=1e-4,
        atol=1e-6,
    )
