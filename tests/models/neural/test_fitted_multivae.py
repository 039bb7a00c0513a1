from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.models import multivae
from recbias.models.multivae import FittedMultiVAE, MultiVAE
from support.models import recommending

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
