"""The fitted form of item-to-item models, and sparse matrices as stored states."""

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
        return FittedItemWeights(state["weights"] if "weights" in state else restore_matrix(state))


def store_matrix(matrix: Matrix) -> State:
    """Return a CSR matrix as the arrays ``data``, ``indices``, ``indptr`` and ``shape``."""
    return {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape, dtype=np.int64),
    }


def restore_matrix(state: State) -> Matrix:
    """Return the CSR matrix that ``store_matrix`` stored."""
    from scipy.sparse import csr_array

    n_rows, n_columns = map(int, state["shape"])
    arrays = (state["data"], state["indices"], state["indptr"])
    return csr_array(arrays, shape=(n_rows, n_columns))
