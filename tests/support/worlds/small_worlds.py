"""Small interactions for tests."""

from __future__ import annotations

import numpy as np

from recbias.core.dataset import Interactions, Vocabulary


def make_interactions(
    pairs: list[tuple[int, int]],
    *,
    n_users: int | None = None,
    n_items: int | None = None,
    values: list[float] | None = None,
    times: list[int] | None = None,
) -> Interactions:
    """Return interactions of (user code, item code) pairs, with the codes as identifiers."""
    users = np.array([user for user, _ in pairs], dtype=np.int32)
    items = np.array([item for _, item in pairs], dtype=np.int32)
    n_users_ = n_users if n_users is not None else int(users.max(initial=-1)) + 1
    n_items_ = n_items if n_items is not None else int(items.max(initial=-1)) + 1
    return Interactions(
        users,
        items,
        np.array(values if values is not None else [1.0] * len(pairs), dtype=np.float32),
        np.array(times, dtype=np.int64) if times is not None else None,
        Vocabulary(np.array([f"u{code}" for code in range(n_users_)], dtype=object)),
        Vocabulary(np.array([f"i{code}" for code in range(n_items_)], dtype=object)),
    )
