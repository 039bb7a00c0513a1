"""The items that a model predicts for texts: all items, the most likely first."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.core.arrays import Codes, Ids


@dataclass(frozen=True, eq=False)
class Predictions:
    """The items that a model predicts for held-out texts, and the items of the texts.

    Args:
        ids: An identifier for each text, the same for every model.
        ranked: All items that the model knows, by code, the most likely first, ``int32[n, c]``;
            each row is a permutation of the same codes.
    """

    ids: Ids
    items: Codes
    ranked: Codes

    def __len__(self) -> int:
        """Return the number of texts."""
        return int(self.items.size)
