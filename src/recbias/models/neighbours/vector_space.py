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
    average_item_vectors,
    compute_item_vectors,
    count_terms,
    select_last_weights,
    validate_columns,
    warn_about_missing_terms,
)
from recbias.models.ranking.fitted_models import restore_matrix, store_matrix
from recbias.models.ranking.score_blocks import BYTES_PER_SCORE, rank_by_scores
from recbias.numerics.sparse.blocks import MEMORY_LIMIT
from recbias.numerics.sparse.products import sparse_is_faster

VectorSimilarity: TypeAlias = Literal["cosine", "correlation"]
"""The similarity of a user vector and an item vector."""

BYTES_PER_TERM = 24  # Memory per term of a user's profile while it is computed and multiplied

USER_SAMPLE = 256
"""Number of users whose profiles decide whether sparse or dense products are faster."""

ROUNDING = 1e-6
"""A vector whose variance is less than this share of its square is constant up to rounding."""


@dataclass(frozen=True, kw_only=True)
class VSM:
    """Recommend items whose description is similar to those of the user's items.

        score(u, i) = cos(p_u, v_i),    p_u = 1/|I_u| Σ_{j in I_u} v_j

    ``I_u`` are the user's training items and ``v_i`` is the vector of item i over the terms: the
    values of its attributes or the words of its text, ``binary`` or weighted by tf-idf,

        v_it = f_it idf_t / |f_i idf|,    idf_t = 1 + ln((1 + N) / (1 + n_t))

    ``f_it`` is the number of occurrences of term t in item i, ``n_t`` the number of items with
    term t and ``N`` the number of items with any term. ``correlation`` is the cosine after
    subtracting from each vector its mean over the terms.

    An item without terms has no score and is in no list. A user who has only such items has an
    empty list; a warning reports their number. So has a user without training items.

    Args:
        attributes: Columns of the items.
        terms: ``values`` of those columns (a cell ``a|b`` has two), or the ``words`` of their
            text.
        user_profile: The weights of terms in the vectors that are averaged to the user's profile.
        item_profile: The weights of terms in the vector of the item that is scored.
        similarity: ``cosine`` or ``correlation``.
        variant: ``elliot`` uses as a user's profile 1 for each term of the user's items, or with
            ``tfidf`` the weight in the last training item that has the term, with idf
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
    similarity: VectorSimilarity = "cosine"
    variant: Variant = "paper"

    def check_data(self, data: TrainingData) -> None:
        """Raise UnknownColumn if the items do not have the columns."""
        validate_columns(data, self.attributes)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedVSM:
        """Count the terms of each item."""
        fitted = FittedVSM(self, count_terms(data, self.attributes, self.terms))
        vectors = fitted.vectors(self.item_profile)
        warn_about_missing_terms("VSM", data, vectors, outcome="their lists are empty")
        return fitted

    def restore(self, state: State) -> FittedVSM:
        """Return the fitted recommender of a stored state."""
        return FittedVSM(self, restore_matrix(state))


@dataclass(frozen=True, eq=False)
class FittedVSM:
    """The terms of each item.

    Args:
        model: The settings.
        counts: Number of occurrences of each term in each item, CSR
            ``float32 (n_items, n_terms)``.
    """

    model: VSM
    counts: Matrix

    def state(self) -> State:
        """Return the counts as named arrays."""
        return store_matrix(self.counts)

    def vectors(self, profile: Profile) -> Matrix:
        """Return the vectors of the items, CSR ``float32 (n_items, n_terms)``."""
        return compute_item_vectors(self.counts, profile, variant=self.model.variant)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        vectors, similarity = self.vectors(self.model.user_profile), self.model.similarity
        items = _Norms.compute(self.vectors(self.model.item_profile), similarity)
        columns = items.vectors.T.tocsr()
        sample = np.arange(min(data.train.n_users, USER_SAMPLE), dtype=np.int32)
        if not sparse_is_faster(self._compute_profiles(data, vectors, sample), columns):
            columns = columns.toarray()

        n_items, n_terms = self.counts.shape

        def score_block(users: Codes) -> AnyArray:
            """Return the cosines of the centred vectors, NaN where undefined."""
            profiles = _Norms.compute(self._compute_profiles(data, vectors, users), similarity)
            dots = profiles.vectors @ columns
            dense = dots if isinstance(dots, np.ndarray) else dots.toarray()
            centred = dense - n_terms * np.outer(profiles.means, items.means)
            return np.asarray(centred / np.outer(profiles.lengths, items.lengths))

        score_bytes = BYTES_PER_SCORE * n_items
        share = score_bytes / (score_bytes + BYTES_PER_TERM * n_terms + 1)
        limit = int(MEMORY_LIMIT * share)
        return rank_by_scores(score_block, queries, k, data, memory_limit=limit)

    def _compute_profiles(self, data: TrainingData, vectors: Matrix, users: Codes) -> Matrix:
        if self.model.variant == "paper":
            return average_item_vectors(data.train, vectors, users)
        if self.model.user_profile == "tfidf":
            return select_last_weights(data.train, vectors, users)
        return compute_item_vectors(average_item_vectors(data.train, vectors, users), "binary")


@dataclass(frozen=True, eq=False)
class _Norms:
    """Vectors with their means and norms."""

    vectors: Matrix  # CSR ``float32 (n, n_terms)``
    means: FloatArray  # Subtracted from each entry of a vector, ``float64[n]``
    # The norms after the subtraction, ``float64[n]``; NaN for a constant vector
    lengths: FloatArray

    @classmethod
    def compute(cls, vectors: Matrix, similarity: VectorSimilarity) -> _Norms:
        n_terms = vectors.shape[1]
        precise = vectors.astype(np.float64)
        squares = np.asarray((precise * precise).sum(axis=1)).ravel()
        means = np.asarray(precise.sum(axis=1)).ravel() / max(n_terms, 1)
        means *= similarity == "correlation"
        centred = squares - n_terms * means**2
        centred[centred <= ROUNDING * squares] = np.nan
        return cls(vectors, means, np.sqrt(centred))
