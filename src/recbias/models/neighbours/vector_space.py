"""The vector space model: users and items as vectors over attributes or words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import MinLen

from recbias.core.arrays import AnyArray, Codes, FloatArray, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import Output, State
from recbias.core.queries.queries import Queries
from recbias.models.neighbours.item_profiles import (
    Profile,
    Terms,
    Variant,
    item_vectors,
    last_vectors,
    mean_vectors,
    refuse_unknown,
    term_counts,
    warn_of_nothing,
)
from recbias.models.ranking.score_blocks import BYTES_A_SCORE, rank_by_scores
from recbias.models.ranking.sparse_state import arrays_of, matrix_of
from recbias.numerics.sparse.blocks import MEMORY_LIMIT
from recbias.numerics.sparse.products import sparse_is_faster

Likeness: TypeAlias = Literal["cosine", "correlation"]
"""How a user's vector is compared with an item's."""

BYTES_A_TERM = 24
"""Memory that a term of a user's profile takes while it is made and multiplied."""

USERS_TRIED = 256
"""Users whose profiles say whether products with them are faster sparse or dense."""

ROUNDING = 1e-6
"""A vector whose spread is less than this share of its size is constant but for rounding."""


@dataclass(frozen=True, kw_only=True)
class VSM:
    """Recommend items that are described like the user's items.

        score(u, i) = cos(p_u, v_i),    p_u = 1/|I_u| Σ_{j in I_u} v_j

    ``v_i`` is the vector of item i over the terms: the values of its attributes, or the words of
    its text, ``binary`` or weighed by tf-idf,

        v_it = f_it idf_t / |f_i idf|,    idf_t = 1 + ln((1 + N) / (1 + n_t))

    where ``f_it`` is how often term t stands in item i, ``n_t`` in how many items it stands and
    ``N`` how many have a term; ``I_u`` are the user's training items. ``correlation`` is the
    cosine after each vector's mean over the terms is taken off.

    An item without any term has no score and is in no list; a user who has only such items has an
    empty list, as has one without training items. They are counted in a warning.

    Args:
        attributes: Columns of the items.
        terms: ``values`` of those columns (a cell ``a|b`` has two), or the ``words`` of their
            text.
        user_profile: How terms weigh in the vectors of which the user's is the mean.
        item_profile: How terms weigh in the vector of the item that is scored.
        similarity: ``cosine`` or ``correlation``.
        variant: ``elliot`` takes as a user's profile 1 for each term that any of the user's items
            has, or with ``tfidf`` the weight in the last training item that has it, with idf
            ``ln(N / n_t)``, as that framework does.

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Salton, Wong and Yang, "A Vector Space Model for Automatic Indexing", CACM 18(11), 1975;
        Lops, de Gemmis and Semeraro, "Content-based Recommender Systems: State of the Art and
        Trends", Recommender Systems Handbook, 2011, section 3.3.
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy", "scikit-learn")

    attributes: Annotated[tuple[str, ...], MinLen(1)] = ("genres",)
    terms: Terms = "values"
    user_profile: Profile = "tfidf"
    item_profile: Profile = "tfidf"
    similarity: Likeness = "cosine"
    variant: Variant = "paper"

    def check_data(self, data: TrainingData) -> None:
        """Look whether the items have the columns."""
        refuse_unknown(data, self.attributes)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedVSM:
        """Count the terms of each item."""
        fitted = FittedVSM(self, term_counts(data, self.attributes, self.terms))
        outcome = "their lists are empty"
        warn_of_nothing("VSM", data, fitted.vectors(self.item_profile), outcome=outcome)
        return fitted

    def restore(self, state: State) -> FittedVSM:
        """Return the fitted recommender of a stored state."""
        return FittedVSM(self, matrix_of(state))


@dataclass(frozen=True, eq=False)
class FittedVSM:
    """The terms of each item.

    Args:
        model: How they weigh.
        counts: How often each term stands in each item, CSR ``float32 (n_items, n_terms)``.
    """

    model: VSM
    counts: Matrix

    def state(self) -> State:
        """Return the arrays."""
        return arrays_of(self.counts)

    def vectors(self, profile: Profile) -> Matrix:
        """Return the vectors of the items, CSR ``float32 (n_items, n_terms)``."""
        return item_vectors(self.counts, profile, variant=self.model.variant)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return a list for each query, best first."""
        own = self.vectors(self.model.user_profile)
        items = _Compared.of(self.vectors(self.model.item_profile), self.model.similarity)
        columns = items.vectors.T.tocsr()
        some = np.arange(min(data.train.n_users, USERS_TRIED), dtype=np.int32)
        if not sparse_is_faster(self._profiles(data, own, some), columns):
            columns = columns.toarray()

        def score_block(users: Codes) -> AnyArray:
            profiles = _Compared.of(self._profiles(data, own, users), self.model.similarity)
            dots = profiles.vectors @ columns
            dense = dots if isinstance(dots, np.ndarray) else dots.toarray()
            return _likeness(dense, profiles, items)

        n_items, n_terms = self.counts.shape
        share = BYTES_A_SCORE * n_items / (BYTES_A_SCORE * n_items + BYTES_A_TERM * n_terms + 1)
        limit = int(MEMORY_LIMIT * share)
        return rank_by_scores(score_block, queries, k, data, memory_limit=limit)

    def _profiles(self, data: TrainingData, vectors: Matrix, users: Codes) -> Matrix:
        if self.model.variant == "paper":
            return mean_vectors(data.train, vectors, users)
        if self.model.user_profile == "tfidf":
            return last_vectors(data.train, vectors, users)
        return item_vectors(mean_vectors(data.train, vectors, users), "binary")


@dataclass(frozen=True, eq=False)
class _Compared:
    """Vectors with what comparing them needs.

    Args:
        vectors: CSR ``float32 (n, n_terms)``.
        means: What is taken off each entry of a vector, ``float64[n]``.
        lengths: The lengths after that, ``float64[n]``; NaN where there is nothing left.
    """

    vectors: Matrix
    means: FloatArray
    lengths: FloatArray

    @classmethod
    def of(cls, vectors: Matrix, similarity: Likeness) -> _Compared:
        n_terms = vectors.shape[1]
        wide = vectors.astype(np.float64)
        squares = np.asarray((wide * wide).sum(axis=1)).ravel()
        means = np.asarray(wide.sum(axis=1)).ravel() / max(n_terms, 1)
        means *= similarity == "correlation"
        left = squares - n_terms * means**2
        left[left <= ROUNDING * squares] = np.nan
        return cls(vectors, means, np.sqrt(left))


def _likeness(dots: AnyArray, users: _Compared, items: _Compared) -> AnyArray:
    """Return the cosines of the vectors less their means, ``(b, n_items)``, NaN for nothing."""
    n_terms = items.vectors.shape[1]
    centred = dots - n_terms * np.outer(users.means, items.means)
    likeness: AnyArray = centred / np.outer(users.lengths, items.lengths)
    return likeness
