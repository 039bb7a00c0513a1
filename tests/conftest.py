"""Fixtures of all tests: a random generator and the folder of real datasets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

settings.register_profile("house", deadline=None, database=None, derandomize=True)
settings.load_profile("house")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real datasets, or skip the test."""
    folder = Path(os.environ.get("RECBIAS_DATA", "") or ROOT.parent / "shared" / "data")
    if not (folder / "ml-1m" / "ratings.dat").is_file():
        pytest.skip("no real data: set RECBIAS_DATA to a folder that holds ml-1m/")
    return folder.resolve()
