"""Item-based and user-based nearest neighbours by co-occurrence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.models.devices import Device
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.device_algebra.nearest_rows import dense_is_faster, find_nearest_on_device
from recbias.models.ranking.device_products import rank_product
from recbias.models.ranking.fitted_models import restore_matrix, store_matrix
from recbias.numerics.devices import OnDevice, find_accelerator
from recbias.numerics.sparse.similarity import Kind, Similarity, find_nearest

Weights: TypeAlias = Literal["binary", "rating"]  # The weight of an interaction: 1, or its rating


class _KNN(OnDevice):
    """The needs and the neighbour search of the models of co-occurrence."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    neighbors: int
    similarity: Kind
    alpha: float
    shrink: float
    weights: Weights

    def _find_neighbours(self, vectors: Matrix) -> Matrix:
        gpu = find_accelerator(self.device)
        if gpu is not None and dense_is_faster(vectors):
            similarity = Similarity(self.similarity, self.alpha, self.shrink)
            return find_nearest_on_device(vectors, self.neighbors, similarity, gpu)
        return find_nearest(
            vectors, self.neighbors, kind=self.similarity, alpha=self.alpha, shrink=self.shrink
        )


@dataclass(frozen=True, kw_only=True)
class ItemKNN(_KNN):
    """Recommend items that are similar to the items of the user's history.

        score(u, i) = Σ_{j in N(i)} r_uj s_ij

    ``r_uj`` is the weight of the interaction of user u with item j, ``s_ij`` the similarity of two
    items by their common users, and ``N(i)`` the ``neighbors`` items most similar to the candidate
    item i, without i itself. Using the neighbours of the history item j instead is less accurate.
    A user without training items has an empty list.

    Args:
        neighbors: Number of neighbours per item.
        similarity: ``cosine``, ``asymmetric`` (cosine with ``alpha``), ``jaccard`` or ``dice``.
        alpha: For ``asymmetric`` only: 0.5 is cosine, 1 is the share of j's users who have i.
        shrink: Added to the denominator of the similarity to discount small overlaps.
        weights: ``binary`` weighs every interaction 1, ``rating`` by its value.
        device: Where the neighbours are found, unless the catalogue is so large that a CPU is
            faster, and the lists are ranked.

    Raises:
        TooLittleMemory: A GPU cannot hold the interactions and the similarities of one item.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", ACM TOIS 22(1), 2004,
        section 4; Aiolli, RecSys 2013, section 4 (asymmetric cosine).
    """

    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Kind = "cosine"
    alpha: Annotated[float, Ge(0), Le(1)] = 0.5
    shrink: Annotated[float, Ge(0)] = 0.0
    weights: Weights = "binary"
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemKNN:
        """Find the neighbours of each item."""
        neighbours = self._find_neighbours(select_history(data, self.weights).T.tocsr())
        return FittedItemKNN(neighbours, self.weights, self.device)

    def restore(self, state: State) -> FittedItemKNN:
        """Return the fitted recommender of a stored state."""
        return FittedItemKNN(restore_matrix(state), self.weights, self.device)


@dataclass(frozen=True, kw_only=True)
class UserKNN(_KNN):
    """Recommend the items of similar users.

        score(u, i) = Σ_{v in N(u)} s_uv r_vi

    ``s_uv`` is the similarity of two users by their common items, ``r_vi`` the weight of the
    interaction of user v with item i, and ``N(u)`` the ``neighbors`` users most similar to u,
    without u. A user without training items has an empty list; for a user without neighbours all
    items have score 0 and are ordered by item code.

    Args:
        neighbors: Number of neighbours per user.
        similarity: ``cosine``, ``asymmetric`` (cosine with ``alpha``), ``jaccard`` or ``dice``.
        alpha: For ``asymmetric`` only: 0.5 is cosine, 1 is the share of v's items that u has.
        shrink: Added to the denominator of the similarity to discount small overlaps.
        weights: ``binary`` weighs every interaction 1, ``rating`` by its value.
        variant: ``elliot`` uses reverse neighbours, as that framework does: ``N(u)`` are the users
            who have u among their own ``neighbors`` nearest, which are many for some users and
            none for others. (Elliot also counts a user as its own neighbour, which only scores
            items of the history.)
        device: Where the neighbours are found, unless users have so little in common that a CPU is
            faster, and the lists are ranked.

    Raises:
        TooLittleMemory: A GPU cannot hold the interactions and the similarities of one user.

    Source:
        Sarwar, Karypis, Konstan and Riedl, "Analysis of Recommendation Algorithms for E-Commerce",
        EC 2000, section 3.2; Aiolli, RecSys 2013, section 4 (asymmetric cosine).
    """

    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Kind = "cosine"
    alpha: Annotated[float, Ge(0), Le(1)] = 0.5
    shrink: Annotated[float, Ge(0)] = 0.0
    weights: Weights = "binary"
    variant: Literal["paper", "elliot"] = "paper"
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedUserKNN:
        """Find the neighbours of each user."""
        neighbours = self._find_neighbours(select_history(data, self.weights))
        if self.variant == "elliot":
            neighbours = neighbours.T.tocsr()
        return FittedUserKNN(neighbours, self.weights, self.device)

    def restore(self, state: State) -> FittedUserKNN:
        """Return the fitted recommender of a stored state."""
        return FittedUserKNN(restore_matrix(state), self.weights, self.device)


@dataclass(frozen=True, eq=False)
class _FittedKNN:
    """The neighbours of each item or user."""

    neighbours: Matrix  # CSR ``float32 (n, n)``: row t holds the similarities of ``N(t)``
    weights: Weights = "binary"  # The weight of an interaction
    device: Device = "cpu"  # Where scores are computed and ranked

    def state(self) -> State:
        return store_matrix(self.neighbours)


class FittedItemKNN(_FittedKNN):
    """The neighbours of each item."""

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        history = select_history(data, self.weights)
        right = self.neighbours.T.tocsr()
        return rank_product(history, right, queries, k, data, self.device)


class FittedUserKNN(_FittedKNN):
    """The neighbours of each user."""

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        history = select_history(data, self.weights)
        return rank_product(self.neighbours, history, queries, k, data, self.device)


def select_history(data: TrainingData, weights: Weights) -> Matrix:
    """Return the weights of the training interactions, CSR ``float32 (n_users, n_items)``."""
    return data.train.binary if weights == "binary" else data.train.weighted
