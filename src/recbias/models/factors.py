"""What latent-factor models learn: a vector for each user and each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, Codes
from recbias.core.evidence import Embeddings
from recbias.core.protocols import State
from recbias.core.queries import Queries
from recbias.core.ranked_lists import RankedLists
from recbias.core.split import TrainingData
from recbias.models.ranking import rank_by_scores

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
    """

    user_factors: Floats32
    item_factors: Floats32
    item_bias: Floats32 | None = None

    @classmethod
    def restored(cls, state: State) -> FittedFactors:
        """Return the factors of a stored state."""
        return cls(state["user_factors"], state["item_factors"], state.get("item_bias"))

    def state(self) -> State:
        """Return the arrays."""
        arrays = {"user_factors": self.user_factors, "item_factors": self.item_factors}
        return arrays if self.item_bias is None else arrays | {"item_bias": self.item_bias}

    def embeddings(self) -> Embeddings:
        """Return the vectors; the item bias is in neither."""
        return Embeddings(self.user_factors, self.item_factors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        return rank_by_scores(self.scores, queries, k, data)

    def scores(self, users: Codes) -> AnyArray:
        """Return the scores of all items for some users, ``float32 (b, n_items)``."""
        scores: AnyArray = self.user_factors[users] @ self.item_factors.T
        if self.item_bias is not None:
            scores += self.item_bias
        return scores
