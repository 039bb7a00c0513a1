"""The items of each user in the order of time, cut into windows and padded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import UnknownColumn
from recbias.models.ranking.tensors import Tensor

DRAWS = 2**31 - 1
"""The range of random numbers: an item's probability differs from uniform by one in this many."""


def require_times(data: TrainingData, name: str) -> None:
    """Refuse data without times for a model that learns from the order of interactions.

    Raises:
        UnknownColumn: The training interactions have no times.
    """
    if data.train.times is None:
        message = f"{name} needs the order of a user's interactions, and they have no times"
        remedy = "add a column timestamp to the interactions, or choose another model"
        raise UnknownColumn(message, remedy=remedy)


@dataclass(frozen=True, eq=False)
class Histories:
    """The training items of all users in the order of time, concatenated.

    Rows of a user with equal times are in the order of the file, as in the split
    ``leave_one_out``. A repeated pair stays repeated.

    Args:
        items: The items of each user, first to last, ``int64[n]``.
        starts: Where each user starts in ``items``, ``int64[n_users + 1]``.
    """

    items: AnyArray
    starts: AnyArray

    @classmethod
    def from_interactions(cls, train: Interactions) -> Histories:
        """Return the histories of training interactions."""
        order = np.lexsort(
            (train.times, train.users) if train.times is not None else (train.users,)
        )
        starts = np.append(0, np.cumsum(train.user_counts()))
        return cls(train.items[order].astype(np.int64), starts.astype(np.int64))

    def cut_windows(
        self, length: int, least: int, rng: np.random.Generator | None = None
    ) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Cut each history, from its end, into windows of ``length`` items or fewer.

        Two windows share one item if ``least`` is 2, so that every item but a user's first is the
        successor of another in exactly one window; else they share none.

        Args:
            length: Largest number of items of a window.
            least: Smallest number of items of a window, 1 or 2.
            rng: Moves all cuts of a history later by a random number of items, uniform over those
                that give other windows, so that the last window is the shorter; None for no move.

        Returns:
            The user of each window, its position in ``items``, and its number of items, which is
            at least ``least``, ``int64`` each.
        """
        stride = length - (least - 1)
        counts = np.diff(self.starts)
        moves = np.zeros_like(counts) if rng is None else rng.integers(stride, size=counts.size)
        sizes = counts - (least - 1) + moves
        n_windows = np.where(counts >= least, -(-sizes // stride), 0)
        users = np.repeat(np.arange(counts.size), n_windows)
        number = np.arange(users.size) - np.repeat(np.cumsum(n_windows) - n_windows, n_windows)
        starts, ends = self.starts[users], self.starts[users + 1]
        stops = ends + moves[users] - number * stride
        firsts = np.maximum(stops - length, starts)
        return users, firsts, np.minimum(stops, ends) - firsts

    def select_last(self, users: AnyArray, length: int) -> tuple[AnyArray, AnyArray]:
        """Return the position and the number of the last ``length`` items of users."""
        stops = self.starts[users + 1]
        firsts = np.maximum(stops - length, self.starts[users])
        return firsts, stops - firsts


def pad_windows(items: Tensor, starts: Tensor, counts: Tensor, padding: int) -> Tensor:
    """Return windows of items as rows whose last items are in the last column, padded before.

    Args:
        items: All histories, ``int64[n]``.
        starts: Where each window starts, ``int64[b]``.
        counts: Its number of items, ``int64[b]``.
        padding: The code in place of an item.

    >>> import torch
    >>> items, starts, counts = torch.arange(5), torch.tensor([0, 3]), torch.tensor([3, 1])
    >>> pad_windows(items, starts, counts, 9).tolist()
    [[0, 1, 2], [9, 9, 3]]
    """
    import torch

    width = int(counts.max()) if len(counts) else 0
    columns = torch.arange(width, device=items.device) - (width - counts)[:, None]
    if not len(items):
        return torch.full_like(columns, padding)
    positions = (starts[:, None] + columns).clip(0, len(items) - 1)
    return items[positions].masked_fill(columns < 0, padding)


@dataclass(frozen=True, eq=False)
class UnseenItems:
    """Samples, uniformly and without rejection, items that users do not have, on a device.

    The items that user u lacks are numbered 0, 1, ...; number r is the item r + c, where c of the
    user's items are not above it, found by a binary search among all users' items at once.

    Args:
        keys: For each distinct training pair in the order of users and items, the user's offset
            plus the item minus its rank among the user's items, ``int64[p]``, ascending.
        starts: Where each user starts in ``keys``, ``int64[n_users + 1]``.
        n_items: The number of items.
    """

    keys: Tensor
    starts: Tensor
    n_items: int

    @classmethod
    def from_interactions(cls, train: Interactions, device: Any) -> UnseenItems:
        """Return the sampler of a training part."""
        import torch

        matrix = train.binary
        starts = matrix.indptr.astype(np.int64)
        counts = np.diff(starts)
        users = np.repeat(np.arange(train.n_users), counts)
        ranks = np.arange(users.size) - starts[users]
        keys = users * (train.n_items + 1) + matrix.indices - ranks
        as_tensor = partial(torch.tensor, dtype=torch.int64, device=device)
        return cls(as_tensor(keys), as_tensor(starts), train.n_items)

    def sample(self, users: Tensor, n: int, generator: Any) -> Tensor:
        """Return ``n`` items for each user, ``int64 (b, n)``; each user must lack an item."""
        import torch

        first, n_seen = self.starts[users], self.starts[users + 1] - self.starts[users]
        n_unseen = (self.n_items - n_seen)[:, None]
        draws = torch.randint(
            DRAWS, (len(users), n), generator=generator, dtype=torch.int64, device=users.device
        )
        numbers = draws % n_unseen
        keys = users[:, None] * (self.n_items + 1) + numbers
        return numbers + torch.searchsorted(self.keys, keys, right=True) - first[:, None]
