"""Vectors from the demo world: users by the genres of their picks, items by their genres.

Users pick from the same items each time; the items that are measured are others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from list_studies import values_of
from population import Draws
from tally import Study, World
from vector_studies import OF_EAA, R_RIPA, SPREADS, evidence_of

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.outputs.evidence import Embeddings, Evidence
from recbias.data.datasets.demo import GENRES, Demo, encode_genres

N_USERS, N_ITEMS, MANY = 300, 200, 8_000
NOISE = 0.3
"""The spread of what is added to the vector of an item."""


def sample(seed: int, preference: float = 1.0, *, rival: bool = False) -> Evidence:
    """Users and items of a seed; a rival puts the items elsewhere."""
    world, vectors = items_of([seed, 1], N_ITEMS, rival=rival)
    return with_items(users_of(seed, N_USERS, preference), world, vectors, seed)


def users_of(seed: int, n: int, preference: float) -> Dataset:
    world = Demo(n_users=n, n_items=N_ITEMS, per_user=40, preference=preference)
    draws: Any = Draws(seed)
    return world.load(Path(), draws)


def items_of(seed: list[int], n: int, *, rival: bool = False) -> tuple[Dataset, AnyArray]:
    world = Demo(n_users=2, n_items=n, per_user=4).load(Path(), np.random.default_rng(seed))
    return world, item_vectors(world, np.random.default_rng([*seed, int(rival)]))


@cache
def everything() -> Evidence:
    """Very many users and items."""
    found = with_items(users_of(10**6, MANY, 1.0), *items_of([10**6], MANY), 10**6)
    return replace(found, n_bootstrap=2)


def item_vectors(world: Dataset, rng: np.random.Generator) -> AnyArray:
    """The genres of each item as 0 and 1, and noise, ``float (n, 6)``."""
    items: Any = world.items
    genres = encode_genres(items).T
    return genres - genres.mean() + NOISE * rng.standard_normal(genres.shape)


def user_vectors(world: Dataset) -> AnyArray:
    """The share of each genre in the picks of each user, less its mean, ``float (n, 6)``."""
    items: Any = world.items
    shares = world.interactions.binary @ encode_genres(items).T.astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares - 1 / len(GENRES)


def with_items(world: Dataset, of: Dataset, vectors: AnyArray, seed: int) -> Evidence:
    """The users of one world and the items of another, in one space."""
    users: Any = world.users
    items: Any = of.items
    empty = evidence_of(np.ones((2, 1)), np.ones((2, 1)), seed)
    return replace(
        empty,
        item_ids=of.item_ids,
        users=users,
        items=Attributes(of.item_ids, items.frame, "item"),
        embeddings=Embeddings(user_vectors(world).astype(np.float32), vectors.astype(np.float32)),
    )


def of_all(study: Study, _seed: int) -> Mapping[str, float]:
    """The figure of very many users and items."""
    return values_of(study.measure(everything()))


WORLDS = (
    World(
        "vectors of the demo world",
        f"the value of {MANY:,} other users and items",
        (OF_EAA, *R_RIPA[:-1]),
        sample,
        of_all,
    ),
    World(
        "vectors of the demo world, equal groups",
        "",
        (*SPREADS, *R_RIPA),
        null=lambda seed: (sample(seed, 0.0), sample(seed, 0.0, rival=True)),
    ),
)
