"""Nearest neighbours by item attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Gt, MinLen

from recbias.core.arrays import Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.protocols import Output, State
from recbias.models.neighbours.item_profiles import (
    Profile,
    Variant,
    average_item_vectors,
    compute_item_vectors,
    count_terms,
    select_last_weights,
    validate_columns,
    warn_about_missing_terms,
)
from recbias.models.neighbours.knn import (
    FittedItemKNN,
    FittedUserKNN,
    Weights,
)
from recbias.models.ranking.fitted_models import restore_matrix
from recbias.numerics.sparse.distances import find_nearest_by
from recbias.numerics.sparse.similarity import find_nearest

Similarity: TypeAlias = Literal[
    "cosine", "jaccard", "dice", "dot", "euclidean", "braycurtis", "chebyshev"
]
"""The similarities of attribute vectors."""

OUTCOME = "their scores are all 0"  # The consequence for users whose items have no attributes
USER_BLOCK = 4096  # Number of users whose profiles are computed together


class _AttributeKNN:
    """The needs of the attribute-based models."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    attributes: tuple[str, ...]
    neighbors: int

    def check_data(self, data: TrainingData) -> None:
        """Raise UnknownColumn if the items do not have the columns."""
        validate_columns(data, self.attributes)


@dataclass(frozen=True, kw_only=True)
class AttributeItemKNN(_AttributeKNN):
    """Recommend items whose attributes are similar to those of the user's items.

        score(u, i) = Σ_{j in N(i)} r_uj s_ij

    ``r_uj`` is the weight of the interaction of user u with item j, ``s_ij`` the similarity of two
    items by their attributes (such as genres), and ``N(i)`` the ``neighbors`` training items most
    similar to i, without i; ties are broken by item code. The distances d ``euclidean``,
    ``braycurtis`` and ``chebyshev`` are converted to the similarity ``1 / (1 + d)``.

    An item without attributes has no neighbours and score 0. For a user who has only such items
    all scores are 0; a warning reports their number. A user without training items has an empty
    list. Elliot counts an item as its own neighbour, which only scores items of the history: its
    ``topK`` of n corresponds to n - 1 here if every item is most similar to itself.

    Args:
        attributes: Columns of the items; a cell ``a|b`` has two values.
        profile: The weight of an attribute: 1 for ``binary``, higher for rare ones for ``tfidf``.
        neighbors: Number of neighbours per item.
        similarity: ``cosine``, ``jaccard``, ``dice``, ``dot`` (which favours items with many
            attributes), ``euclidean``, ``braycurtis`` or ``chebyshev``.
        weights: ``binary`` weighs every interaction 1, ``rating`` by its value.

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Gantner, Rendle, Freudenthaler and Schmidt-Thieme, "MyMediaLite: A Free Recommender System
        Library", RecSys 2011 (its attribute-based item kNN).
    """

    attributes: Annotated[tuple[str, ...], MinLen(1)] = ("genres",)
    profile: Profile = "binary"
    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Similarity = "cosine"
    weights: Weights = "binary"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemKNN:
        """Find the neighbours of each item."""
        vectors = compute_item_vectors(count_terms(data, self.attributes), self.profile)
        warn_about_missing_terms("AttributeItemKNN", data, vectors, outcome=OUTCOME)
        neighbours = find_neighbours(vectors, self.neighbors, kind=self.similarity)
        return FittedItemKNN(neighbours, self.weights)

    def restore(self, state: State) -> FittedItemKNN:
        """Return the fitted recommender of a stored state."""
        return FittedItemKNN(restore_matrix(state), self.weights)


@dataclass(frozen=True, kw_only=True)
class AttributeUserKNN(_AttributeKNN):
    """Recommend the items of users whose items have similar attributes.

        score(u, i) = Σ_{v in N(u)} s_uv r_vi,    a_u = 1/|I_u| Σ_{j in I_u} v_j

    ``a_u`` is the profile of user u, the mean of the attribute vectors ``v_j`` of the user's
    training items ``I_u`` (for ``binary``, the share of the items that have each attribute),
    ``s_uv`` the similarity of two profiles, ``N(u)`` the ``neighbors`` users most similar to u,
    without u, and ``r_vi`` the weight of the interaction of user v with item i. The distances d
    ``euclidean``, ``braycurtis`` and ``chebyshev`` are converted to the similarity
    ``1 / (1 + d)``.

    A user whose items have no attributes has no neighbours: all items have score 0 and are ordered
    by item code; a warning reports the number of these users. A user without training items has an
    empty list.

    Args:
        attributes: Columns of the items; a cell ``a|b`` has two values.
        profile: The weight of an attribute: 1 for ``binary``, higher for rare ones for ``tfidf``.
        neighbors: Number of neighbours per user.
        similarity: ``cosine``, ``jaccard``, ``dice``, ``dot``, ``euclidean``, ``braycurtis`` or
            ``chebyshev``.
        weights: ``binary`` weighs every interaction 1, ``rating`` by its value.
        variant: ``elliot`` uses reverse neighbours: the users who have u among their own nearest.
            With ``tfidf`` it takes the weight of each attribute from the user's last training item
            that has it, with idf ``ln(N / n)``, as that framework does.

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Pazzani, "A Framework for Collaborative, Content-Based and Demographic Filtering",
        Artificial Intelligence Review 13, 1999 (collaboration via content).
    """

    attributes: Annotated[tuple[str, ...], MinLen(1)] = ("genres",)
    profile: Profile = "binary"
    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Similarity = "cosine"
    weights: Weights = "binary"
    variant: Variant = "paper"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedUserKNN:
        """Find the neighbours of each user."""
        counts = count_terms(data, self.attributes)
        vectors = compute_item_vectors(counts, self.profile, variant=self.variant)
        warn_about_missing_terms("AttributeUserKNN", data, vectors, outcome=OUTCOME)
        profiles = self._compute_profiles(data, vectors)
        neighbours = find_neighbours(profiles, self.neighbors, kind=self.similarity)
        if self.variant == "elliot":
            neighbours = neighbours.T.tocsr()
        return FittedUserKNN(neighbours, self.weights)

    def restore(self, state: State) -> FittedUserKNN:
        """Return the fitted recommender of a stored state."""
        return FittedUserKNN(restore_matrix(state), self.weights)

    def _compute_profiles(self, data: TrainingData, vectors: Matrix) -> Matrix:
        from scipy.sparse import vstack

        use_last = self.variant == "elliot" and self.profile == "tfidf"
        combine = select_last_weights if use_last else average_item_vectors
        starts = range(0, max(data.train.n_users, 1), USER_BLOCK)
        codes = np.arange(data.train.n_users, dtype=np.int32)
        blocks = [codes[start : start + USER_BLOCK] for start in starts]
        return vstack([combine(data.train, vectors, users) for users in blocks]).tocsr()


def find_neighbours(vectors: Matrix, neighbors: int, *, kind: Similarity) -> Matrix:
    """Return the most similar other rows of each row; rows without terms are excluded.

    ``vectors`` are CSR ``float32 (n, n_terms)``. The result is CSR ``float32 (n, n)``: row t holds
    the similarities of the neighbours of row t.
    """
    match kind:
        case "cosine" | "jaccard" | "dice":
            return find_nearest(vectors, neighbors, kind=kind)
        case _:
            return find_nearest_by(kind, vectors, neighbors)
