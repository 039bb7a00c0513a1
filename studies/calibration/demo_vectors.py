"""Vectors from the dataset demo: users by the genres of their picks, items by their genres.

Users pick from the same items each time; the items that are measured are others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from list_studies import get_values
from population import Draws
from tally import Study, World
from vector_studies import GENRES, OF_EAA, R_RIPA, SETS, SETS_DIFFER, SPREADS, make_evidence

from recbias.core.dataset import AnyArray, Attributes, Dataset
from recbias.core.evidence import Embeddings, Evidence
from recbias.data.demo import GENRES as ALL_GENRES
from recbias.data.demo import Demo, encode_genres
from recbias.metrics.embeddings.sets import select_sets

COMPONENTS = ("pca", "pca_centred")
N_USERS, N_ITEMS, MANY = 300, 200, 8_000
NOISE = 0.3
"""The spread of what is added to the vector of an item."""


def sample(seed: int, preference: float = 1.0, *, rival: bool = False) -> Evidence:
    """Users and items of a seed; a rival puts the items elsewhere."""
    world, vectors = load_items([seed, 1], N_ITEMS, rival=rival)
    return join_users_and_items(load_users(seed, N_USERS, preference), world, vectors, seed)


def load_users(seed: int, n: int, preference: float) -> Dataset:
    world = Demo(n_users=n, n_items=N_ITEMS, per_user=40, preference=preference)
    draws: Any = Draws(seed)
    return world.load(Path(), draws)


def load_items(seed: list[int], n: int, *, rival: bool = False) -> tuple[Dataset, AnyArray]:
    world = Demo(n_users=2, n_items=n, per_user=4).load(Path(), np.random.default_rng(seed))
    return world, make_item_vectors(world, np.random.default_rng([*seed, int(rival)]))


@cache
def join_large_world() -> Evidence:
    """Very many users and items."""
    evidence = join_users_and_items(
        load_users(10**6, MANY, 1.0), *load_items([10**6], MANY), 10**6
    )
    return replace(evidence, n_bootstrap=2)


def make_item_vectors(world: Dataset, rng: np.random.Generator) -> AnyArray:
    """The genres of each item as 0 and 1, and noise, ``float (n, 6)``."""
    items: Any = world.items
    genres = encode_genres(items).T
    return genres - genres.mean() + NOISE * rng.standard_normal(genres.shape)


def make_user_vectors(world: Dataset) -> AnyArray:
    """The share of each genre in the picks of each user, less its mean, ``float (n, 6)``."""
    items: Any = world.items
    shares = world.interactions.binary @ encode_genres(items).T.astype(np.float64)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares - 1 / len(ALL_GENRES)


def join_users_and_items(world: Dataset, of: Dataset, vectors: AnyArray, seed: int) -> Evidence:
    """The users of one world and the items of another, in one space."""
    users: Any = world.users
    items: Any = of.items
    empty = make_evidence(np.ones((2, 1)), np.ones((2, 1)), seed)
    return replace(
        empty,
        item_ids=of.item_ids,
        users=users,
        items=Attributes(of.item_ids, items.frame, "item"),
        embeddings=Embeddings(
            make_user_vectors(world).astype(np.float32), vectors.astype(np.float32)
        ),
    )


def measure_large_world(study: Study, _seed: int) -> Mapping[str, float]:
    """The figure of very many users and items."""
    _, _, direction = study.name.partition(", ")
    if direction in COMPONENTS:
        return project_items(direction)
    return get_values(study.measure(join_large_world()))


@cache
def sum_moments() -> tuple[AnyArray, AnyArray]:
    """The difference of the mean vectors of women and men, and the sum of their covariances.

    The first two eigenvalues differ by 4%, so that 8,000 users do not determine the component.
    """
    moments = []
    for sample_number in range(16):
        world = load_users(10**6 + sample_number, 50_000, 1.0)
        users: Any = world.users
        vectors, is_woman = make_user_vectors(world), (users.frame["gender"] == "F").to_numpy()
        sides = (vectors[is_woman], vectors[~is_woman])
        moments.append([(side.mean(axis=0), side.T @ side / len(side)) for side in sides])
    (mean_a, square_a), (mean_b, square_b) = (
        [np.mean([sample[side][part] for sample in moments], axis=0) for part in (0, 1)]
        for side in (0, 1)
    )
    covariances = square_a - np.outer(mean_a, mean_a) + square_b - np.outer(mean_b, mean_b)
    return mean_a - mean_b, covariances


def project_items(direction: str) -> Mapping[str, float]:
    """How far very many items lie along the first component of 800,000 users."""
    gap, moment = sum_moments()
    if direction == "pca":
        moment = moment + np.outer(gap, gap)
    axis = np.linalg.eigh(moment)[1][:, -1]
    axis *= np.sign(axis @ gap)
    targets = select_sets(join_large_world(), GENRES)
    e, p = (float((target.directions @ axis).mean()) for target in targets)
    return {"": e - p, SETS[0]: e, SETS[1]: p}


WORLDS = (
    World(
        "vectors of generated data",
        f"the value of {MANY:,} other users and items; of pca, that of 800,000 users",
        (OF_EAA, *R_RIPA[:-1]),
        sample,
        measure_large_world,
        plants="`preference: 1`",
    ),
    World(
        "vectors of generated data, equal groups",
        "",
        (*SPREADS, *R_RIPA),
        null=lambda seed: (sample(seed, 0.0), sample(seed, 0.0, rival=True)),
        plants="nothing: `preference: 0`",
        detects=SETS_DIFFER,
    ),
)
