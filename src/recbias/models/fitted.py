"""The fitted forms of factorizations and item-to-item models, with their base classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from recbias.core.dataset import AnyArray, Codes, Matrix, Queries, TrainingData
from recbias.core.evidence import Embeddings, RankedLists
from recbias.core.plugins import Device, Output, State
from recbias.models.gpu import Ranking, rank_product

Floats32 = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FittedFactors:
    """Latent factors of users and items.

        score(u, i) = p_u · q_i + b_i

    A user whose vector is NaN has an empty list; an item whose vector is NaN is in no list.

    Args:
        user_factors: ``p``, ``float32 (n_users, d)``.
        item_factors: ``q``, ``float32 (n_items, d)``.
        item_bias: ``b``, ``float32[n_items]``, or None for 0.
        device: Where scores are computed and ranked.
    """

    user_factors: Floats32
    item_factors: Floats32
    item_bias: Floats32 | None = None
    device: Device = "cpu"

    @classmethod
    def from_state(cls, state: State, device: Device = "cpu") -> FittedFactors:
        """Return the factors of a stored state."""
        return cls(state["user_factors"], state["item_factors"], state.get("item_bias"), device)

    def state(self) -> State:
        """Return the factors as named arrays."""
        arrays = {"user_factors": self.user_factors, "item_factors": self.item_factors}
        return arrays if self.item_bias is None else arrays | {"item_bias": self.item_bias}

    def embeddings(self) -> Embeddings:
        """Return the vectors, which do not contain the item bias."""
        return Embeddings(self.user_factors, self.item_factors)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        state = self.state()
        names = tuple(name for name in state if name != "user_factors")
        return Ranking(score_block, state, self.device, item_arrays=names).lists(queries, k, data)

    def scores(self, users: Codes) -> AnyArray:
        """Return the scores of all items for these users, ``float32 (b, n_items)``."""
        return np.asarray(score_block(self.state(), users))


class FactorModel:
    """Base class of the models that learn a vector for each user and each item."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists", "embeddings"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})

    device: Device = "cpu"  # Where scores are computed and ranked

    def restore(self, state: State) -> FittedFactors:
        """Return the fitted recommender of a stored state."""
        return FittedFactors.from_state(state, self.device)


def score_block(state: Mapping[str, Any], users: Any) -> Any:
    """Return the scores of all items for these users, ``float32 (b, n_items)``.

    The state of ``FittedFactors`` and the user codes are all arrays or all tensors.
    """
    scores = state["user_factors"][users] @ state["item_factors"].T
    if "item_bias" in state:
        scores += state["item_bias"]
    return scores


@dataclass(frozen=True, eq=False)
class FittedItemWeights:
    """Item-to-item weights, summed over the items of a user's history.

        score(u, i) = Σ_{j in I_u} W_ji

    Args:
        weights: ``W``, ``float32 (n_items, n_items)``, an array or a CSR matrix.
        device: Where scores are computed and ranked.
    """

    weights: Matrix | AnyArray
    device: Device = "cpu"

    @classmethod
    def from_matrix(cls, weights: Any, device: Device = "cpu") -> FittedItemWeights:
        """Convert a dense or sparse matrix of any type to ``float32``."""
        from scipy.sparse import csr_array

        if isinstance(weights, np.ndarray):
            return cls(np.ascontiguousarray(weights, dtype=np.float32), device)
        matrix = csr_array(weights).astype(np.float32)
        matrix.sort_indices()
        return cls(matrix, device)

    def state(self) -> State:
        """Return the weights as named arrays."""
        if isinstance(self.weights, np.ndarray):
            return {"weights": self.weights}
        return store_matrix(self.weights)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        return rank_product(data.train.binary, self.weights, queries, k, data, self.device)


class ItemWeightModel:
    """Base class of the models that learn a weight for each pair of items."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})

    device: Device = "cpu"  # Where scores are computed and ranked

    def restore(self, state: State) -> FittedItemWeights:
        """Return the fitted recommender of a stored state."""
        weights = state["weights"] if "weights" in state else restore_matrix(state)
        return FittedItemWeights(weights, self.device)


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
