"""The fitted form of item-to-item models: a weight for each pair of items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from recbias.core.arrays import AnyArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.score_blocks import rank_by_product
from recbias.models.ranking.sparse_state import restore_matrix, store_matrix


@dataclass(frozen=True, eq=False)
class FittedItemWeights:
    """Item-to-item weights, summed over the items of a user's history.

        score(u, i) = Σ_{j in I_u} W_ji

    Args:
        weights: ``W``, ``float32 (n_items, n_items)``, an array or a CSR matrix.
    """

    weights: Matrix | AnyArray

    @classmethod
    def from_matrix(cls, weights: Any) -> FittedItemWeights:
        """Convert a dense or sparse matrix of any type to ``float32``."""
        from scipy.sparse import csr_array

        if isinstance(weights, np.ndarray):
            return cls(np.ascontiguousarray(weights, dtype=np.float32))
        matrix = csr_array(weights).astype(np.float32)
        matrix.sort_indices()
        return cls(matrix)

    @classmethod
    def from_state(cls, state: State) -> FittedItemWeights:
        """Return the weights of a stored state."""
        return cls(state["weights"] if "weights" in state else restore_matrix(state))

    def state(self) -> State:
        """Return the weights as named arrays."""
        if isinstance(self.weights, np.ndarray):
            return {"weights": self.weights}
        return store_matrix(self.weights)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        return rank_by_product(data.train.binary, self.weights, queries, k, data)


class ItemWeightModel:
    """Base class of the models that learn a weight for each pair of items."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})

    def restore(self, state: State) -> FittedItemWeights:
        """Return the fitted recommender of a stored state."""
        return FittedItemWeights.from_state(state)
