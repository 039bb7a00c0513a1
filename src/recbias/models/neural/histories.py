"""What users have, for models that read a whole history: on a device, and as rows of length 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import Codes, Matrix
from recbias.core.dataset.interactions import Interactions
from recbias.models.ranking.tensors import Tensor


@dataclass(frozen=True, eq=False)
class Histories:
    """The training items of all users, end to end on a device.

    Args:
        active: The users who have an item, ``int32``, an array.
        items: The items of each user, ascending, one user after the other, ``int64``.
        starts: Where each user's items start in ``items``, ``int64 (n_users + 1,)``.
    """

    active: Codes
    items: Tensor
    starts: Tensor

    @classmethod
    def of(cls, train: Interactions, device: Any) -> Histories:
        """Return the histories of a training part; a pair that is repeated counts once."""
        import torch

        matrix = train.binary
        items, starts = (
            torch.tensor(each, dtype=torch.int64, device=device)
            for each in (matrix.indices, matrix.indptr)
        )
        return cls(np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32), items, starts)

    def of_users(self, users: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the histories of some users.

        Args:
            users: User codes, ``(b,)``.

        Returns:
            Place in ``users`` and item of each entry, in order of ``users``, and the number of
            entries of each user, all ``int64``.
        """
        import torch

        users = users.long()
        firsts = self.starts[users]
        counts = self.starts[users + 1] - firsts
        rows = torch.arange(len(users), device=users.device).repeat_interleave(counts)
        shifts = firsts - (counts.cumsum(0) - counts)
        places = torch.arange(len(rows), device=users.device) + shifts[rows]
        return rows, self.items[places], counts


def unit_rows(train: Interactions, users: Codes) -> Matrix:
    """Return the rows of some users, each entry 1 / sqrt(number of the user's items).

    Args:
        train: The training part.
        users: User codes, ``(b,)``.

    Returns:
        CSR ``float32 (b, n_items)``; the row of a user without items is 0.
    """
    matrix = train.binary[users]
    counts = np.diff(matrix.indptr)
    matrix.data /= np.sqrt(np.repeat(counts, counts), dtype=np.float32)
    return matrix
