"""User histories on a device, and as rows of unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import Codes, Matrix
from recbias.core.dataset.interactions import Interactions
from recbias.models.ranking.tensors import Tensor


@dataclass(frozen=True, eq=False)
class Histories:
    """The training items of all users, concatenated, on a device.

    Args:
        active: The users with training items, an ``int32`` array.
        items: The items of each user in ascending order, ``int64``.
        starts: The position in ``items`` where each user starts, ``int64 (n_users + 1,)``.
    """

    active: Codes
    items: Tensor
    starts: Tensor

    @classmethod
    def from_interactions(cls, train: Interactions, device: Any) -> Histories:
        """Return the histories of training interactions; repeated pairs count once."""
        import torch

        matrix = train.binary
        items, starts = (
            torch.tensor(array, dtype=torch.int64, device=device)
            for array in (matrix.indices, matrix.indptr)
        )
        return cls(np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32), items, starts)

    def look_up(self, users: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the histories of these users, concatenated.

        Args:
            users: User codes, ``(b,)``.

        Returns:
            The row in ``users`` and the item of each entry, and the number of entries of each
            user, all ``int64``.
        """
        import torch

        users = users.long()
        first_positions = self.starts[users]
        counts = self.starts[users + 1] - first_positions
        rows = torch.arange(len(users), device=users.device).repeat_interleave(counts)
        shifts = first_positions - (counts.cumsum(0) - counts)
        positions = torch.arange(len(rows), device=users.device) + shifts[rows]
        return rows, self.items[positions], counts


def unit_rows(train: Interactions, users: Codes) -> Matrix:
    """Return the histories of these users as rows of unit length: 1 / sqrt(number of items).

    Args:
        train: The training interactions.
        users: User codes, ``(b,)``.

    Returns:
        CSR ``float32 (b, n_items)``; a user without items has a zero row.
    """
    matrix = train.binary[users]
    counts = np.diff(matrix.indptr)
    matrix.data /= np.sqrt(np.repeat(counts, counts), dtype=np.float32)
    return matrix
