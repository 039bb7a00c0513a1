"""Small embeddings of users and items, for tests of association metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset import Attributes
from recbias.core.evidence import Embeddings, Evidence
from recbias.metrics.embeddings.sets import GroupPair, TargetPair
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary

GENDER = GroupPair(of="users", attribute="gender", a="F", b="M")
GENRES = TargetPair(of="items", attribute="genres", e="Romance", p="Action")

USERS = [[1.0, 0.0], [3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]]
ITEMS = [[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [0.6, -0.8], [0.0, -1.0]]
"""Of length 1: users (1, 0), (0.6, 0.8) | (0, 1), (-1, 0); items (1, 0), (0, 1) | (-1, 0),
(0.6, -0.8), (0, -1)."""


def make_vectors(
    users: Any = USERS,
    items: Any = ITEMS,
    *,
    gender: Sequence[str | None] = ("F", "F", "M", "M"),
    genres: Sequence[str | None] = ("Romance", "Romance", "Action", "Action", "Action"),
    **fields: Any,
) -> Evidence:
    """Return embeddings of two women and two men, two romances and three action films."""
    user_ids, item_ids = make_vocabulary("u", len(users)), make_vocabulary("i", len(items))
    vectors = [np.array(matrix, dtype=np.float32) for matrix in (users, items)]
    defaults: dict[str, Any] = {
        "queries": make_user_queries(0),
        "item_ids": item_ids,
        "users": Attributes(user_ids, pd.DataFrame({"gender": list(gender)}), "user"),
        "items": Attributes(item_ids, pd.DataFrame({"genres": list(genres)}), "item"),
        "embeddings": Embeddings(*vectors),
        "metric": "the metric",
        "n_bootstrap": 200,
    }
    return Evidence(**(defaults | fields))


def remove_evidence(evidence: Evidence, kind: str) -> Evidence:
    """Return the evidence without one kind."""
    missing: dict[str, Any] = {kind: None}
    return replace(evidence, **missing)


def plant_association(
    rng: np.random.Generator, *, shift: float, n: int = 60, d: int = 8, **fields: Any
) -> Evidence:
    """Return standard normal embeddings of ``n`` entities of each group and set, shifted.

    A and E are shifted by ``shift`` along the first axis, B and P by ``-shift``.
    """
    users, items = rng.standard_normal((2 * n, d)), rng.standard_normal((2 * n, d))
    for vectors in (users, items):
        vectors[:n, 0] += shift
        vectors[n:, 0] -= shift
    return make_vectors(
        users,
        items,
        gender=["F"] * n + ["M"] * n,
        genres=["Romance"] * n + ["Action"] * n,
        **fields,
    )
