"""Training targets of rating models: explicit ratings, or implicit feedback with negatives.

If all training values are equal, the feedback is implicit: training pairs have target 1 and
sampled pairs have target 0. Otherwise the targets are the ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.models.training.samplers import Sampler, shuffle_rows

EpochSampler: TypeAlias = Callable[[np.random.Generator], Sequence[AnyArray]]
"""Samples the users, items and targets of an epoch."""


def is_implicit(train: Interactions) -> bool:
    """Return whether all values are equal, so that there are no ratings to learn."""
    return not len(train) or bool(train.values.min() == train.values.max())


def create_rating_sampler(
    train: Interactions, negatives: int, *, unit: bool = False
) -> EpochSampler:
    """Return a sampler of the ratings in random order, or of the pairs with their negatives.

    ``negatives`` are the unseen items per training pair, for implicit feedback. ``unit`` rescales
    ratings from their range to 0 to 1.
    """
    if is_implicit(train):
        sampler = Sampler.from_interactions(train)
        return lambda rng: sampler.sample_with_negatives(negatives, rng, unseen=True)
    values = train.values
    if unit:
        values = (values - values.min()) / np.ptp(values)

    return lambda rng: shuffle_rows(train.users, train.items, values, rng)


def create_coin_sampler(train: Interactions) -> EpochSampler:
    """Return a sampler of as many coin pairs as there are training rows."""
    sampler = Sampler.from_interactions(train)
    return lambda rng: sampler.sample_coin_pairs(len(train), rng)


def count_samples(train: Interactions, negatives: int) -> int:
    """Return about how many samples ``create_rating_sampler`` has per epoch; at least 1."""
    return max(1, len(train) * (1 + negatives if is_implicit(train) else 1))


def compute_mean_target(train: Interactions, negatives: int) -> float:
    """Return the mean of the targets of ``create_rating_sampler``."""
    return 1 / (1 + negatives) if is_implicit(train) else float(train.values.mean())
