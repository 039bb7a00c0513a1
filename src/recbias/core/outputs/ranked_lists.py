"""The items given to each query, best first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import BoolArray, Codes, Ids, freeze


def no_ids() -> Ids:
    """Return an empty array of identifiers."""
    return np.empty(0, dtype=object)


@dataclass(frozen=True, eq=False)
class RankedLists:
    """Top-k items of each query; rank is the column.

    Args:
        items: Item codes, ``int32[q, k]``; -1 pads, at the end of a row only. A code of
            ``n_items`` or more is an item outside the catalogue, named in ``outside``.
        scores: The score of each place, ``float32[q, k]``; NaN where there is none.
        outside: Identifiers of the codes from ``n_items`` on (lists made elsewhere may name items
            that the dataset does not hold: they keep their place and are never relevant).
    """

    items: Codes
    scores: npt.NDArray[np.float32]
    outside: Ids = field(default_factory=no_ids)

    def __post_init__(self) -> None:
        """Freeze the arrays."""
        freeze(self.items)
        freeze(self.scores)

    @property
    def k(self) -> int:
        """The longest list that fits."""
        return int(self.items.shape[1])

    def __len__(self) -> int:
        """Return the number of lists, one for each query."""
        return int(self.items.shape[0])

    @property
    def filled(self) -> BoolArray:
        """Which places hold an item, ``bool[q, k]``."""
        return self.items >= 0

    def cut(self, k: int) -> RankedLists:
        """Return the first ``k`` places of each list."""
        return RankedLists(self.items[:, :k], self.scores[:, :k], self.outside)
