"""What models of ratings learn from: the ratings, or where all are equal, choices and drawn pairs.

Where all training values are equal there is nothing to tell a rating from another: the training
pairs are then 1 and drawn pairs are 0. Where they differ, they are what is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.models.training.samplers import Sampler, shuffled

Draw: TypeAlias = Callable[[np.random.Generator], Sequence[AnyArray]]
"""Draws an epoch of users, items and values."""


def are_choices(train: Interactions) -> bool:
    """Return whether all values are equal, so that there are no ratings to learn."""
    return not len(train) or bool(train.values.min() == train.values.max())


def drawn_pairs(train: Interactions, negatives: int, *, unit: bool = False) -> Draw:
    """Return what draws the ratings in random order, or the pairs and their negatives.

    Args:
        train: The training rows.
        negatives: Items that the user does not have, for each pair, where there are no ratings.
        unit: Bring ratings from their range to 0 to 1.
    """
    if are_choices(train):
        sampler = Sampler.of(train)
        return lambda rng: sampler.with_negatives(negatives, rng, unseen=True)
    values = train.values
    if unit:
        values = (values - values.min()) / np.ptp(values)

    return lambda rng: shuffled(train.users, train.items, values, rng)


def drawn_coins(train: Interactions) -> Draw:
    """Return what draws as many pairs as there are training rows: users alike, then a coin."""
    sampler = Sampler.of(train)
    return lambda rng: sampler.coin_pairs(len(train), rng)


def n_samples(train: Interactions, negatives: int) -> int:
    """Return about how many samples ``drawn_pairs`` draws; at least 1."""
    return max(1, len(train) * (1 + negatives if are_choices(train) else 1))


def mean_value(train: Interactions, negatives: int) -> float:
    """Return the mean of the values that ``drawn_pairs`` draws."""
    return 1 / (1 + negatives) if are_choices(train) else float(train.values.mean())
