"""Fixtures of the model tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core import context
from recbias.core.context import collect_warnings
from recbias.core.dataset import Split
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.movielens import MovieLens1M
from recbias.data.splits import RandomHoldout


@pytest.fixture(scope="session")
def movielens(real_data: Path) -> Split:
    """MovieLens 1M: ratings of 4 and 5, 10-core, a random fifth of each user's items held out."""
    rng = np.random.default_rng(42)
    with collect_warnings():
        dataset = MovieLens1M().load(real_data, rng)
        for data_filter in (Threshold(at_least=4), KCore(k=10)):
            dataset = data_filter.apply(dataset, rng)
        return RandomHoldout(test=0.2).split(dataset, 0, rng)


@pytest.fixture(autouse=True)
def save_every_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save each checkpoint, however short the time since the last."""
    monkeypatch.setattr(context, "MIN_CHECKPOINT_INTERVAL", 0.0)
    monkeypatch.setattr(context, "CHECKPOINT_TIME_SHARE", np.inf)
