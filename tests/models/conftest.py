"""What the tests of models share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.dataset.split import Split
from recbias.data.datasets.movielens import MovieLens1M
from recbias.data.filters import KCore, Threshold
from recbias.data.splits.random_holdout import RandomHoldout


@pytest.fixture(scope="session")
def movielens(real_data: Path) -> Split:
    """Ratings of 4 and 5 of MovieLens 1M, 10-core, a random fifth of each user's held out."""
    rng = np.random.default_rng(42)
    dataset = MovieLens1M().load(real_data, rng)
    for each in (Threshold(at_least=4), KCore(k=10)):
        dataset = each.apply(dataset, rng)
    return RandomHoldout(test=0.2).split(dataset, 0, rng)
