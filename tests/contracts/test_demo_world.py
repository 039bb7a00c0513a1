"""The demo dataset has tastes that every personalised model learns."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.test_recommenders import FROM_FILES, UNPERSONALISED
from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.data.demo import Demo
from recbias.data.filters_queries import Threshold
from recbias.data.splits import RandomHoldout
from recbias.models.baselines import MostPop
from recbias.models.training import validation_ndcg
from recbias.registry import REGISTRIES

MODELS = REGISTRIES["models"]
SLOW = {"BERT4Rec"}
"""Models that need more epochs than a quick test has."""
LEARNERS = [
    name
    for name in MODELS.names()
    if name not in FROM_FILES | UNPERSONALISED | SLOW and "/" not in name
]
SMALL_DATA_SETTINGS: dict[str, dict[str, Any]] = {
    "PureSVD": {"factors": 8},
    "MF": {"embedding_size": 8, "learning_rate": 0.01, "reg": 0.01},
    "FunkSVD": {"embedding_size": 8, "learning_rate": 0.01, "reg": 0.01},
    "PMF": {"learning_rate": 0.01},
    "MF2020": {"learning_rate": 0.05},
    "BPR-MF": {"embedding_size": 16},
    "NeuMF": {"embedding_size": 8, "learning_rate": 0.003, "epochs": 15},
    "DeepFM": {"learning_rate": 0.01},
    "ConvMF": {"learning_rate": 0.01},
    "SASRec": {"embedding_size": 16, "batch_size": 16, "epochs": 6, "learning_rate": 0.005},
    "GRU4Rec": {"embedding_size": 16, "batch_size": 16, "epochs": 15, "learning_rate": 0.01},
    "LightGCN": {"embedding_size": 16, "learning_rate": 0.02, "epochs": 30},
    "AMF": {"embedding_size": 16, "learning_rate": 0.005, "reg": 0.1},
    "MultiVAE": {"hidden_size": 64, "embedding_size": 16, "learning_rate": 0.005},
}
"""Settings for 400 users, where the defaults are for thousands."""


@pytest.fixture(scope="module")
def data() -> TrainingData:
    rng = np.random.default_rng(7)
    dataset = Demo(n_users=400, n_items=150, per_user=30).load(Path(), rng)
    dataset = Threshold(at_least=1).apply(dataset, rng)  # every interaction counts
    split = RandomHoldout(test=0.2, validation=0.2).split(dataset, 0, rng)
    return split.training_data(users=dataset.users, items=dataset.items)


@pytest.mark.parametrize("name", LEARNERS)
@collect_warnings()
def test_a_model_that_learns_tastes_beats_popularity(name: str, data: TrainingData) -> None:
    popularity_ndcg = validation_ndcg(MostPop().fit(data, np.random.default_rng(1)), data)
    cls = MODELS.load(name)
    names = {field.name for field in fields(cls)}
    batches = {"batch_size": 256} if "batch_size" in names else {}
    train = TrainingData(data.train, None, data.users, data.items)  # no early stopping
    fitted = cls(**batches | SMALL_DATA_SETTINGS.get(name, {})).fit(
        train, np.random.default_rng(1)
    )
    assert validation_ndcg(fitted, data) > 1.2 * popularity_ndcg
