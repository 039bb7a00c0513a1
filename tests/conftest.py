"""What the tests share: chance by the door, and where the real data is."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from recbias.core.interactions import Interactions
from recbias.core.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real datasets, or a skip that says how to name it."""
    folder = Path(os.environ.get("RECBIAS_DATA", "") or ROOT.parent / "shared" / "data")
    if not (folder / "ml-1m" / "ratings.dat").is_file():
        pytest.skip("no real data: set RECBIAS_DATA to a folder that holds ml-1m/")
    return folder.resolve()


def rows(
    pairs: list[tuple[int, int]],
    *,
    n_users: int | None = None,
    n_items: int | None = None,
    values: list[float] | None = None,
    times: list[int] | None = None,
) -> Interactions:
    """Interactions of (user code, item code) pairs, with the codes as identifiers."""
    users = np.array([user for user, _ in pairs], dtype=np.int32)
    items = np.array([item for _, item in pairs], dtype=np.int32)
    many_users = n_users if n_users is not None else int(users.max(initial=-1)) + 1
    many_items = n_items if n_items is not None else int(items.max(initial=-1)) + 1
    return Interactions(
        users,
        items,
        np.array(values if values is not None else [1.0] * len(pairs), dtype=np.float32),
        np.array(times, dtype=np.int64) if times is not None else None,
        Vocabulary(np.array([f"u{each}" for each in range(many_users)], dtype=object)),
        Vocabulary(np.array([f"i{each}" for each in range(many_items)], dtype=object)),
    )
