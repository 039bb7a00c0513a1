"""Small spaces of users and items with vectors, for tests of association."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.attributes import Attributes
from recbias.core.outputs.evidence import Embeddings, Evidence
from recbias.metrics.embeddings.entity_sets import GroupPair, TargetPair
from support.evidence_worlds import asked, words

GENDER = GroupPair(of="users", attribute="gender", a="F", b="M")
GENRES = TargetPair(of="items", attribute="genres", e="Romance", p="Action")

USERS = [[1.0, 0.0], [3.0, 4.0], [0.0, 2.0], [-1.0, 0.0]]
ITEMS = [[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [0.6, -0.8], [0.0, -1.0]]
"""Of length 1: users (1, 0), (0.6, 0.8) | (0, 1), (-1, 0); items (1, 0), (0, 1) | (-1, 0),
(0.6, -0.8), (0, -1)."""


def space(
    users: Any = USERS,
    items: Any = ITEMS,
    *,
    gender: Sequence[str | None] = ("F", "F", "M", "M"),
    genres: Sequence[str | None] = ("Romance", "Romance", "Action", "Action", "Action"),
    **others: Any,
) -> Evidence:
    """Evidence of vectors; two women and two men, two Romances and three Action films."""
    user_ids, item_ids = words("u", len(users)), words("i", len(items))
    vectors = [np.array(each, dtype=np.float32) for each in (users, items)]
    facts: dict[str, Any] = {
        "queries": asked(0),
        "item_ids": item_ids,
        "users": Attributes(user_ids, pd.DataFrame({"gender": list(gender)}), "user"),
        "items": Attributes(item_ids, pd.DataFrame({"genres": list(genres)}), "item"),
        "embeddings": Embeddings(*vectors),
        "metric": "the metric",
        "n_bootstrap": 200,
    }
    return Evidence(**(facts | others))


def without(facts: Evidence, kind: str) -> Evidence:
    """The same evidence, but for one kind of it."""
    gone: dict[str, Any] = {kind: None}
    return replace(facts, **gone)


def planted(
    rng: np.random.Generator,
    *,
    shift: float,
    n: int = 60,
    d: int = 8,
    **others: Any,
) -> Evidence:
    """Evidence of ``n`` of each group and set, standard normal; A and E lie ``shift`` farther.

    The first axis is the direction: A and E lie ``shift`` along it, B and P as far the other way.
    """
    users, items = rng.standard_normal((2 * n, d)), rng.standard_normal((2 * n, d))
    for vectors in (users, items):
        vectors[:n, 0] += shift
        vectors[n:, 0] -= shift
    return space(
        users,
        items,
        gender=["F"] * n + ["M"] * n,
        genres=["Romance"] * n + ["Action"] * n,
        **others,
    )
