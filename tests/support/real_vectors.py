"""Vectors learned from MovieLens 1M, for tests of association."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Evidence
from recbias.data.datasets.movielens import MovieLens1M
from recbias.data.filters import KCore, Threshold
from recbias.models.libraries.implicit import ImplicitALS
from recbias.models.linear.pure_svd import PureSVD
from support.evidence_worlds import asked


@cache
def movielens(data: Path, model: str) -> Evidence:
    """Evidence of the vectors that a model of ``configs/papers/aab`` learns, seed 42."""
    rng = np.random.default_rng(42)
    found = MovieLens1M().load(data, rng)
    for each in (Threshold(at_least=4), KCore(k=10)):
        found = each.apply(found, rng)
    learned: Any = {"PureSVD": PureSVD(factors=22), "ALS": ImplicitALS()}[model]
    fitted = learned.fit(TrainingData(found.interactions), rng)
    return Evidence(
        queries=asked(0),
        item_ids=found.item_ids,
        train=found.interactions,
        users=found.users,
        items=found.items,
        embeddings=fitted.embeddings(),
        metric="the metric",
    )
