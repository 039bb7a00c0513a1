"""Recommenders from items with similar attributes, and from users with such a taste."""

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
    item_vectors,
    last_vectors,
    mean_vectors,
    refuse_unknown,
    term_counts,
    warn_of_nothing,
)
from recbias.models.neighbours.knn import FittedItemKNN, FittedUserKNN, Weights
from recbias.models.ranking.sparse_state import matrix_of
from recbias.numerics.sparse.distances import nearest_by
from recbias.numerics.sparse.similarity import nearest

Similarity: TypeAlias = Literal[
    "cosine", "jaccard", "dice", "dot", "euclidean", "braycurtis", "chebyshev"
]
"""The similarities of vectors of attributes."""

OUTCOME = "their scores are all 0"
"""What becomes of users whose items have no attribute."""

USERS_AT_ONCE = 4096
"""Users whose profiles are made together, where their histories are gone through row by row."""


@dataclass(frozen=True, kw_only=True)
class AttributeItemKNN:
    """Recommend items whose attributes are like those of the user's items.

        score(u, i) = Σ_{j in N(i)} r_uj s_ij

    ``r_uj`` is what user u has of item j, ``s_ij`` the similarity of two items by their attributes
    (genres, say), and ``N(i)`` the ``neighbors`` items most similar to i (not i itself) of those
    that anybody has; of equally similar ones those that come first. ``euclidean``, ``braycurtis``
    and ``chebyshev`` are distances d, turned into ``1 / (1 + d)``.

    An item without any attribute is like nothing: it has score 0, and so has every item for a
    user who has only such items. They are counted in a warning. A user without training items
    has an empty list. Elliot keeps the item itself as one of the neighbours, which adds only
    items the user has: its ``topK`` of n is n - 1 here where an item is most like itself.

    Args:
        attributes: Columns of the items; a cell ``a|b`` has two values.
        profile: How an attribute weighs: ``binary`` as 1, ``tfidf`` more if it is rare.
        neighbors: How many neighbours an item keeps.
        similarity: ``cosine``, ``jaccard``, ``dice``, ``dot`` (which favours items with many
            attributes), ``euclidean``, ``braycurtis`` or ``chebyshev``.
        weights: ``binary`` takes every interaction as 1, ``rating`` as its value.

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Gantner, Rendle, Freudenthaler and Schmidt-Thieme, "MyMediaLite: A Free Recommender System
        Library", RecSys 2011 (its attribute-based item kNN).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    attributes: Annotated[tuple[str, ...], MinLen(1)] = ("genres",)
    profile: Profile = "binary"
    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Similarity = "cosine"
    weights: Weights = "binary"

    def check_data(self, data: TrainingData) -> None:
        """Look whether the items have the columns."""
        refuse_unknown(data, self.attributes)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedItemKNN:
        """Find the neighbours of each item."""
        vectors = item_vectors(term_counts(data, self.attributes), self.profile)
        warn_of_nothing("AttributeItemKNN", data, vectors, outcome=OUTCOME)
        return FittedItemKNN(
            most_similar(vectors, self.neighbors, kind=self.similarity), self.weights
        )

    def restore(self, state: State) -> FittedItemKNN:
        """Return the fitted recommender of a stored state."""
        return FittedItemKNN(matrix_of(state), self.weights)


@dataclass(frozen=True, kw_only=True)
class AttributeUserKNN:
    """Recommend what users have whose items are of the same kinds as the user's.

        score(u, i) = Σ_{v in N(u)} s_uv r_vi,    a_u = 1/|I_u| Σ_{j in I_u} v_j

    ``a_u`` is the profile of user u, the mean of the attribute vectors ``v_j`` of the user's
    items (with ``binary``: the share of them that are comedies, ...), ``s_uv`` the similarity of
    two profiles, ``N(u)`` the ``neighbors`` users most similar to u (not u), ``r_vi`` what user v
    has of item i. ``euclidean``, ``braycurtis`` and ``chebyshev`` are distances d, turned into
    ``1 / (1 + d)``.

    A user none of whose items has an attribute is like nobody: all items have score 0, in the
    order of their codes. They are counted in a warning. A user without training items has an
    empty list.

    Args:
        attributes: Columns of the items; a cell ``a|b`` has two values.
        profile: How an attribute weighs: ``binary`` as 1, ``tfidf`` more if it is rare.
        neighbors: How many neighbours a user keeps.
        similarity: ``cosine``, ``jaccard``, ``dice``, ``dot``, ``euclidean``, ``braycurtis`` or
            ``chebyshev``.
        weights: ``binary`` takes every interaction as 1, ``rating`` as its value.
        variant: ``elliot`` asks the users who have u among THEIR nearest, and with ``tfidf``
            takes each attribute's weight from the user's last training item that has it, with
            idf ``ln(N / n)``, as that framework does.

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Pazzani, "A Framework for Collaborative, Content-Based and Demographic Filtering",
        Artificial Intelligence Review 13, 1999 (collaboration via content).
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)

    attributes: Annotated[tuple[str, ...], MinLen(1)] = ("genres",)
    profile: Profile = "binary"
    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Similarity = "cosine"
    weights: Weights = "binary"
    variant: Variant = "paper"

    def check_data(self, data: TrainingData) -> None:
        """Look whether the items have the columns."""
        refuse_unknown(data, self.attributes)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedUserKNN:
        """Find the neighbours of each user."""
        counts = term_counts(data, self.attributes)
        vectors = item_vectors(counts, self.profile, variant=self.variant)
        warn_of_nothing("AttributeUserKNN", data, vectors, outcome=OUTCOME)
        profiles = self._profiles(data, vectors)
        found = most_similar(profiles, self.neighbors, kind=self.similarity)
        reverse = self.variant == "elliot"
        return FittedUserKNN(found.T.tocsr() if reverse else found, self.weights)

    def restore(self, state: State) -> FittedUserKNN:
        """Return the fitted recommender of a stored state."""
        return FittedUserKNN(matrix_of(state), self.weights)

    def _profiles(self, data: TrainingData, vectors: Matrix) -> Matrix:
        from scipy.sparse import vstack

        last = self.variant == "elliot" and self.profile == "tfidf"
        made = last_vectors if last else mean_vectors
        starts = range(0, max(data.train.n_users, 1), USERS_AT_ONCE)
        everybody = np.arange(data.train.n_users, dtype=np.int32)
        blocks = [everybody[start : start + USERS_AT_ONCE] for start in starts]
        return vstack([made(data.train, vectors, each) for each in blocks]).tocsr()


def most_similar(vectors: Matrix, neighbors: int, *, kind: Similarity) -> Matrix:
    """Return each row's most similar other rows; rows of nothing have none and are nobody's.

    Args:
        vectors: CSR ``float32 (n, n_terms)``.
        neighbors: How many others a row keeps.
        kind: The similarity.

    Returns:
        CSR ``float32 (n, n)``: row t holds the neighbours of row t.
    """
    match kind:
        case "cosine" | "jaccard" | "dice":
            return nearest(vectors, neighbors, kind=kind)
        case _:
            return nearest_by(kind, vectors, neighbors)
