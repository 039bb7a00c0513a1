"""Embeddings learned from MovieLens 1M, for tests of association metrics."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.dataset import TrainingData
from recbias.core.evidence import Evidence
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.movielens import MovieLens1M
from recbias.models.libraries import ImplicitALS
from recbias.models.linear import PureSVD
from support.worlds.evidence_worlds import make_user_queries


@cache
def load_movielens_vectors(data: Path, model: str) -> Evidence:
    """Return the embeddings of a model of ``configs/papers/aab``, seed 42."""
    rng = np.random.default_rng(42)
    dataset = MovieLens1M().load(data, rng)
    for filter_ in (Threshold(at_least=4), KCore(k=10)):
        dataset = filter_.apply(dataset, rng)
    recommender: Any = {"PureSVD": PureSVD(factors=22), "ALS": ImplicitALS()}[model]
    fitted = recommender.fit(TrainingData(dataset.interactions), rng)
    return Evidence(
        queries=make_user_queries(0),
        item_ids=dataset.item_ids,
        train=dataset.interactions,
        users=dataset.users,
        items=dataset.items,
        embeddings=fitted.embeddings(),
        metric="the metric",
    )
