"""Interactions whose order matters: the last item determines the next one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recbias.core.dataset import AnyArray, Interactions, TrainingData
from support.worlds.small_worlds import make_interactions


def make_chain(
    n_items: int = 12, n_users: int = 60, length: int = 6
) -> tuple[TrainingData, AnyArray]:
    """Return walks on one cycle through all items, and the item that follows each walk.

    All items are equally likely. As a set, a walk has two equal ends: a model that ignores the
    order cannot tell the next item from the one before the first. The rows are shuffled, so that
    only the times tell the order.
    """
    rng = np.random.default_rng(5)
    cycle = rng.permutation(n_items)
    first = np.arange(n_users) % n_items
    walks = cycle[(first[:, None] + np.arange(length + 1)) % n_items]
    users, steps = (array.ravel() for array in np.mgrid[:n_users, :length])
    order = rng.permutation(users.size)
    pairs = list(zip(users[order].tolist(), walks[users, steps][order].tolist(), strict=True))
    rows = make_interactions(pairs, n_users=n_users, n_items=n_items)
    return TrainingData(set_times(rows, 1000 + 10 * steps[order])), walks[:, -1]


def set_times(rows: Interactions, times: AnyArray) -> Interactions:
    """Return the same rows with times."""
    return replace(rows, times=np.asarray(times, dtype=np.int64))


def set_file_order(data: TrainingData) -> TrainingData:
    """Return the same data with the position of each row as its time."""
    return replace(data, train=set_times(data.train, np.arange(len(data.train))))
