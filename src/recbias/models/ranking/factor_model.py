"""What latent-factor models learn: a vector for each user and each item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.evidence import Embeddings
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.device_ranking import Ranking
from recbias.models.ranking.tensors import Device

Floats32 = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FittedFactors:
    """Scores that are products of a user vector and an item vector.

        score(u, i) = p_u · q_i + b_i

    A user or item whose vector is NaN has no score: the user's list is empty, the item is in none.

    Args:
        user_factors: ``p``, ``float32 (n_users, d)``.
        item_factors: ``q``, ``float32 (n_items, d)``.
        item_bias: ``b``, ``float32[n_items]``, or None for 0.
        device: Where products are worked out and ranked.
    """

    user_factors: Floats32
    item_factors: Floats32
    item_bias: Floats32 | None = None
    device: Device = "cpu"

    @classmethod
    def restored(cls, state: State, device: Device = "cpu") -> FittedFactors:
        """Return the factors of a stored state."""
        return cls(state["user_factors"], state["item_factors"], state.get("item_bias"), device)

    def state(self) -> State:
        """Return the arrays."""
        arrays = {"user_factors": self.user_factors, "item_factors": self.item_factors}
        return arrays if self.item_bias is None else arrays | {"item_bias": self.item_bias}

    def embeddings(self) -> Embeddings:
        """Return the vectors; the item bias is in neither."""
        return Embeddings(self.user_factors, self.item_factors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        return Ranking(score_block, self.state(), self.device).lists(queries, k, data)

    def scores(self, users: Codes) -> AnyArray:
        """Return the scores of all items for some users, ``float32 (b, n_items)``."""
        scores: AnyArray = score_block(self.state(), users)
        return scores


def score_block(state: Mapping[str, Any], users: Any) -> Any:
    """Return the scores of all items for some users, ``float32 (b, n_items)``.

    Args:
        state: The state of ``FittedFactors``, as arrays or as tensors.
        users: User codes, likewise.
    """
    scores = state["user_factors"][users] @ state["item_factors"].T
    if "item_bias" in state:
        scores += state["item_bias"]
    return scores
