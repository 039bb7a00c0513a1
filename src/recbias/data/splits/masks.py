"""What the splits share: a row's place among its user's rows, and three parts from two masks."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split
from recbias.core.errors import Contradiction, NothingLeft

Counts = npt.NDArray[np.int64]


def places_within_users(rows: Interactions, order: AnyArray) -> Counts:
    """Return each row's place among the rows of its user, from 0, ``int64[n]``.

    Args:
        rows: The interactions.
        order: Positions of the rows, the users one after another by code, ``int64[n]``.
    """
    counts = rows.user_counts()
    starts = np.cumsum(counts) - counts
    places = np.empty(len(rows), dtype=np.int64)
    places[order] = np.arange(len(rows)) - np.repeat(starts, counts)
    return places


def shuffled(rows: Interactions, rng: np.random.Generator) -> Counts:
    """Return the positions of the rows in random order, whatever the order they were read in."""
    return np.lexsort((rows.items, rows.users))[rng.permutation(len(rows))]


def shuffled_within_users(rows: Interactions, rng: np.random.Generator) -> Counts:
    """Return the positions of the rows, the users one after another, each in random order."""
    order = shuffled(rows, rng)
    return order[np.argsort(rows.users[order], kind="stable")]


def places_within_items(rows: Interactions, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """Return each row's place in a random order of its item's users, and how many users they are.

    Rows of one user and item have one place.

    Args:
        rows: The interactions.
        rng: Draws the order.
    """
    keys = rows.users.astype(np.int64) * max(rows.n_items, 1) + rows.items
    pairs, of_row = np.unique(keys, return_inverse=True)
    items = pairs % max(rows.n_items, 1)
    drawn = rng.permutation(pairs.size)
    order = drawn[np.argsort(items[drawn], kind="stable")]
    counts = np.bincount(items, minlength=rows.n_items)
    places = np.empty(pairs.size, dtype=np.int64)
    places[order] = np.arange(pairs.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return places[of_row], counts[items][of_row]


def kept_for_training(counts: AnyArray, left_out: float) -> Counts:
    """Return floor((1 - left_out) * n) of each count n, but at least one.

    >>> kept_for_training(np.array([10, 4, 1]), 0.2).tolist()
    [8, 3, 1]
    """
    kept = np.floor((1.0 - left_out) * counts + ROUNDING).astype(np.int64)
    return np.maximum(kept, 1)


ROUNDING = 1e-9
"""Added before rounding down, so that 0.7 of 10 rows is 7 and not 6.999."""


def check_shares(test: float, validation: float) -> None:
    """Refuse shares that leave nothing to train on.

    Raises:
        Contradiction: They add up to 1 or more.
    """
    if test + validation > 1.0 or math.isclose(test + validation, 1.0):
        found = f"test ({test:g}) and validation ({validation:g}) leave nothing to train on"
        remedy = "both are shares of the whole: their sum must be below 1"
        raise Contradiction(found, where="validation", remedy=remedy)


def divided(rows: Interactions, test: BoolArray, validation: BoolArray | None, who: str) -> Split:
    """Return the split of two masks over the rows, ``bool[n]``; the rest is for training.

    Raises:
        NothingLeft: A part is empty.
        Leakage: A (user, item) pair stands in two parts.
    """
    held = test if validation is None else test | validation
    masks = {"train": ~held, "test": test}
    if validation is not None:
        masks["validation"] = validation
    for name, mask in masks.items():
        if not mask.any():
            found = f"{who} of {len(rows):,} interactions leaves the {name} part empty"
            raise NothingLeft(found, remedy="choose other shares, or a dataset with more rows")
    parts = {name: rows.take(mask) for name, mask in masks.items()}
    return Split(parts["train"], parts["test"], parts.get("validation"))
