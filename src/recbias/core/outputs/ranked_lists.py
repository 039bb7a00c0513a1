"""The recommended items of each query, best first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Codes, Ids, freeze


def make_empty_ids() -> Ids:
    """Return an empty array of identifiers."""
    return np.empty(0, dtype=object)


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The top-k items of each query; the column is the rank.

    Args:
        items: Item codes, ``int32[q, k]``; -1 pads the end of a row. A code of ``n_items`` or more
            is an item outside the catalogue, whose identifier is in ``outside``.
        scores: The score of each position, ``float32[q, k]``; NaN if it has none.
        outside: Identifiers of the codes from ``n_items`` on. Lists of other tools may hold items
            that the dataset does not have: they keep their rank and are never relevant.
    """

    items: Codes
    scores: npt.NDArray[np.float32]
    outside: Ids = field(default_factory=make_empty_ids)

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze(self.items)
        freeze(self.scores)

    @property
    def k(self) -> int:
        """The largest possible length of a list."""
        return int(self.items.shape[1])

    def __len__(self) -> int:
        """Return the number of lists, one for each query."""
        return int(self.items.shape[0])

    @property
    def filled(self) -> BoolArray:
        """Which positions hold an item, ``bool[q, k]``."""
        return self.items >= 0

    def take(self, rows: AnyArray | slice) -> RankedLists:
        """Return the lists of some of the queries, by position."""
        return RankedLists(self.items[rows], self.scores[rows], self.outside)

    def truncate(self, k: int) -> RankedLists:
        """Return the first ``k`` positions of each list."""
        return RankedLists(self.items[:, :k], self.scores[:, :k], self.outside)
