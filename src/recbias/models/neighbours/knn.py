"""Recommenders from similar items and from similar users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le

from recbias.core.arrays import Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.ranking.score_blocks import rank_by_product
from recbias.models.ranking.sparse_state import arrays_of, matrix_of
from recbias.numerics.sparse.similarity import Kind, nearest

Weights: TypeAlias = Literal["binary", "rating"]
"""What an interaction counts: 1, or its rating."""


@dataclass(frozen=True, kw_only=True)
class ItemKNN:
    """Recommend items that are similar to the user's items.

        score(u, i) = Σ_{j in N(i)} r_uj s_ij

    ``r_uj`` is what user u has of item j, ``s_ij`` the similarity of two items by the users they
    share, and ``N(i)`` the ``neighbors`` items most similar to i, the item that is scored (not i
    itself). Keeping the neighbours of the history item j instead costs accuracy. A user without
    training items has an empty list.

    Args:
        neighbors: How many neighbours an item keeps.
        similarity: ``cosine``, ``asymmetric`` (cosine with ``alpha``), ``jaccard`` or ``dice``.
        alpha: Of ``asymmetric`` only: 0.5 is cosine, 1 is the share of j's users who have i.
        shrink: Added to the divisor of the similarity: trusts small overlaps less.
        weights: ``binary`` takes every interaction as 1, ``rating`` as its value.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", ACM TOIS 22(1), 2004,
        section 4; Aiolli, RecSys 2013, section 4 (asymmetric cosine).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Kind = "cosine"
    alpha: Annotated[float, Ge(0), Le(1)] = 0.5
    shrink: Annotated[float, Ge(0)] = 0.0
    weights: Weights = "binary"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemKNN:
        """Find the neighbours of each item."""
        found = nearest(
            history(data, self.weights).T.tocsr(),
            self.neighbors,
            kind=self.similarity,
            alpha=self.alpha,
            shrink=self.shrink,
        )
        return FittedItemKNN(found, self.weights)

    def restore(self, state: State) -> FittedItemKNN:
        """Return the fitted recommender of a stored state."""
        return FittedItemKNN(matrix_of(state), self.weights)


@dataclass(frozen=True, eq=False)
class FittedItemKNN:
    """The neighbours of each item.

    Args:
        neighbours: CSR ``float32 (n_items, n_items)``: row i holds the similarities of ``N(i)``.
        weights: What an interaction counts.
    """

    neighbours: Matrix
    weights: Weights = "binary"

    def state(self) -> State:
        """Return the arrays."""
        return arrays_of(self.neighbours)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        items = history(data, self.weights)
        return rank_by_product(items, self.neighbours.T.tocsr(), queries, k, data)


@dataclass(frozen=True, kw_only=True)
class UserKNN:
    """Recommend what similar users have.

        score(u, i) = Σ_{v in N(u)} s_uv r_vi

    ``s_uv`` is the similarity of two users by the items they share, ``r_vi`` what user v has of
    item i, and ``N(u)`` the ``neighbors`` users most similar to u (not u). With
    ``variant: elliot``, ``N(u)`` is the users who have u among THEIR ``neighbors`` nearest: users
    who are like many then have many, users who are like nobody have none. A user without training
    items has an empty list; one without neighbours has items of score 0 in the order of their
    codes.

    Args:
        neighbors: How many neighbours a user keeps.
        similarity: ``cosine``, ``asymmetric`` (cosine with ``alpha``), ``jaccard`` or ``dice``.
        alpha: Of ``asymmetric`` only: 0.5 is cosine, 1 is the share of v's items that u has.
        shrink: Added to the divisor of the similarity: trusts small overlaps less.
        weights: ``binary`` takes every interaction as 1, ``rating`` as its value.
        variant: ``elliot`` asks the users who have u as a neighbour, as that framework does
            (there a user is one of its own neighbours, which only adds items it has).

    Source:
        Sarwar, Karypis, Konstan and Riedl, "Analysis of Recommendation Algorithms for E-Commerce",
        EC 2000, section 3.2; Aiolli, RecSys 2013, section 4 (asymmetric cosine).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Kind = "cosine"
    alpha: Annotated[float, Ge(0), Le(1)] = 0.5
    shrink: Annotated[float, Ge(0)] = 0.0
    weights: Weights = "binary"
    variant: Literal["paper", "elliot"] = "paper"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedUserKNN:
        """Find the neighbours of each user."""
        found = nearest(
            history(data, self.weights),
            self.neighbors,
            kind=self.similarity,
            alpha=self.alpha,
            shrink=self.shrink,
        )
        return FittedUserKNN(found.T.tocsr() if self.variant == "elliot" else found, self.weights)

    def restore(self, state: State) -> FittedUserKNN:
        """Return the fitted recommender of a stored state."""
        return FittedUserKNN(matrix_of(state), self.weights)


@dataclass(frozen=True, eq=False)
class FittedUserKNN:
    """The neighbours of each user.

    Args:
        neighbours: CSR ``float32 (n_users, n_users)``: row u holds the similarities of ``N(u)``.
        weights: What an interaction counts.
    """

    neighbours: Matrix
    weights: Weights = "binary"

    def state(self) -> State:
        """Return the arrays."""
        return arrays_of(self.neighbours)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        return rank_by_product(self.neighbours, history(data, self.weights), queries, k, data)


def history(data: TrainingData, weights: Weights) -> Matrix:
    """Return what each user has of each item, CSR ``float32 (n_users, n_items)``."""
    return data.train.binary if weights == "binary" else data.train.weighted
