"""Nearest neighbours by co-occurrence and by item attributes, and the vector space model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le, MinLen

from recbias.core.context import warn
from recbias.core.dataset import (
    AnyArray,
    Attributes,
    BoolArray,
    Codes,
    FloatArray,
    Interactions,
    Matrix,
    Queries,
    TrainingData,
)
from recbias.core.errors import MissingEvidence, at_setting
from recbias.core.evidence import RankedLists
from recbias.core.plugins import Device, OnlyWith, Output, State
from recbias.kernels.devices import OnDevice, find_accelerator
from recbias.kernels.neighbours import Kind, find_nearest, find_nearest_by
from recbias.kernels.neighbours import Similarity as Similarity_of_neighbours
from recbias.kernels.sparse import MEMORY_LIMIT
from recbias.kernels.topk import sparse_is_faster
from recbias.models.fitted import restore_matrix, store_matrix
from recbias.models.gpu import dense_is_faster, find_nearest_on_device, rank_product
from recbias.models.ranking import BYTES_PER_SCORE, rank_by_scores

_Terms: TypeAlias = Literal["values", "words"]
"""The terms of a column: its values (``a|b`` has two), or the words of its text."""

_Profile: TypeAlias = Literal["binary", "tfidf"]  # The weight of a term of an item: 1, or tf-idf

Variant: TypeAlias = Literal["paper", "elliot"]
"""The definition of the source, or that of the framework Elliot 0.3.1."""


def count_terms(data: TrainingData, columns: Sequence[str], terms: _Terms = "values") -> Matrix:
    """Count the terms of each candidate item: values, or words of two letters or more.

    Items without training interactions have no terms: they cannot be recommended and do not count
    as documents. The same value in two columns is two terms; the same word in two columns is one.
    The result is CSR ``float32 (n_items, n_terms)``.

    Raises:
        MissingEvidence: The data has no items table.
        UnknownColumn: The items have no such column.
    """
    from scipy.sparse import csr_array, diags_array, hstack

    if data.items is None:
        raise MissingEvidence("the data has no items table", remedy="give an items table")
    series = [_read_column(data.items, name) for name in columns]
    if terms == "words":
        counts = _count_words(series)
    else:
        counts = hstack([data.items.membership(name).matrix for name in columns])
    is_candidate = diags_array(data.candidates.astype(np.float32))
    counts = csr_array(is_candidate @ counts.astype(np.float32))
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


def compute_item_vectors(
    counts: Matrix, profile: _Profile, *, variant: Variant = "paper"
) -> Matrix:
    """Return the vector of each item over the terms, CSR ``float32`` like the counts ``f``.

        binary  v_it = 1
        tfidf   v_it = f_it idf_t / |f_i idf|,  idf_t = 1 + ln((1 + N) / (1 + n_t))

    ``f_it`` is the number of occurrences of term t in item i, ``n_t`` the number of items with
    term t, and ``N`` the number of items with any term. In the ``elliot`` variant
    ``idf_t = ln(N / n_t)``: a term that all items have weighs 0.

    >>> from scipy.sparse import csr_array
    >>> counts = csr_array(np.array([[2, 0], [1, 3]], dtype=np.float32))
    >>> compute_item_vectors(counts, "binary").toarray().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    from scipy.sparse import csr_array

    vectors = csr_array(counts, copy=True)
    if profile == "binary":
        vectors.data[:] = 1
        return vectors
    vectors.data *= _compute_idf(counts, int(variant == "paper"))[vectors.indices]
    lengths = np.sqrt(np.asarray((vectors * vectors).sum(axis=1))).ravel()
    lengths[lengths == 0] = 1
    vectors.data /= np.repeat(lengths, np.diff(vectors.indptr)).astype(np.float32)
    vectors.eliminate_zeros()
    return vectors


def average_item_vectors(train: Interactions, vectors: Matrix, users: Codes) -> Matrix:
    """Return the mean vector of each user's training items, CSR ``float32 (b, n_terms)``.

    A user without training items has an empty vector.
    """
    history = train.binary[users]
    sums = (history @ vectors).tocsr()
    shares = 1 / np.maximum(np.diff(history.indptr), 1).astype(np.float32)
    sums.data *= np.repeat(shares, np.diff(sums.indptr))
    return sums


def select_last_weights(train: Interactions, vectors: Matrix, users: Codes) -> Matrix:
    """Return each term's weight in the user's last training item that has the term.

    The vectors of the items are CSR ``float32 (n_items, n_terms)``, the result ``(b, n_terms)``.
    """
    from scipy.sparse import coo_array

    distinct, inverse = np.unique(users, return_inverse=True)
    positions = np.full(train.n_users, -1, dtype=np.int64)
    positions[distinct] = np.arange(distinct.size)
    rows = np.flatnonzero(positions[train.users] >= 0)[::-1]
    weights = vectors[train.items[rows]]
    user_positions = np.repeat(positions[train.users[rows]], np.diff(weights.indptr))
    # rows are in reverse order, so that the first occurrence of a (user, term) pair is the last
    keys, last = np.unique(user_positions * vectors.shape[1] + weights.indices, return_index=True)
    cells = np.divmod(keys, max(vectors.shape[1], 1))
    shape = (distinct.size, vectors.shape[1])
    return coo_array((weights.data[last], cells), shape=shape).tocsr()[inverse]


def warn_about_missing_terms(
    model: str, data: TrainingData, vectors: Matrix, *, outcome: str
) -> None:
    """Warn of candidate items without attributes and of users who have only such items.

    ``outcome`` is the consequence for those users.
    """
    is_bare = data.candidates & ~has_terms(vectors)
    if not is_bare.any():
        return
    n_described = data.train.binary @ has_terms(vectors).astype(np.float32)
    is_active = data.train.user_counts() > 0
    n_users = np.count_nonzero(is_active & (n_described == 0))
    items = f"{np.count_nonzero(is_bare):,} of {np.count_nonzero(data.candidates):,} items"
    users = f"{n_users:,} of {np.count_nonzero(is_active):,} users"
    warn(f"{model}: {items} have no attribute; {users} have only such items: {outcome}")


def has_terms(vectors: Matrix) -> BoolArray:
    """Return which rows have a term, ``bool[n]``."""
    return np.asarray(np.diff(vectors.indptr) > 0)


def _compute_idf(counts: Matrix, smoothing: int) -> AnyArray:
    """Return the idf of each term, ``float32[n_terms]``; arbitrary for a term that no item has."""
    n_items = np.count_nonzero(has_terms(counts))
    n_with_term = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.maximum(smoothing + n_items, 1) / np.maximum(smoothing + n_with_term, 1)
    return np.asarray((smoothing + np.log(rarity)).astype(np.float32))


def _validate_columns(data: TrainingData, attributes: Sequence[str]) -> None:
    """Raise UnknownColumn for a column that the items do not have."""
    if data.items is not None:
        for name in attributes:
            _read_column(data.items, name)


def _read_column(items: Attributes, name: str) -> Any:
    with at_setting("attributes"):
        return items.column(name)


def _count_words(columns: Sequence[Any]) -> Matrix:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [
        column.where(column.notna(), "").astype(str).reset_index(drop=True) for column in columns
    ]
    documents = texts[0].str.cat(texts[1:], sep=" ") if texts[1:] else texts[0]
    vectorizer = CountVectorizer()
    analyze = vectorizer.build_analyzer()
    if not any(analyze(document) for document in documents):
        return csr_array((len(documents), 0), dtype=np.float32)
    return vectorizer.fit_transform(documents)


class _NeighbourModel:
    """Base class of the models that find the neighbours of items or of users."""

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    libraries: ClassVar[tuple[str, ...]] = ("scipy",)
    of_users: ClassVar[bool] = False

    def restore(self, state: State) -> _FittedKNN:
        """Return the fitted recommender of a stored state."""
        return self.wrap(restore_matrix(state))

    def wrap(self, neighbours: Matrix) -> _FittedKNN:
        """Return the fitted recommender of neighbours."""
        device: Device = getattr(self, "device", "cpu")
        return _FittedKNN(neighbours, self.of_users, device)


@dataclass(frozen=True, kw_only=True)
class _KNN(_NeighbourModel, OnDevice):
    """The settings and the neighbour search of the models of co-occurrence."""

    needs: ClassVar[frozenset[str]] = frozenset({"train"})

    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Kind = "cosine"
    alpha: Annotated[float, Ge(0), Le(1), OnlyWith("similarity", "asymmetric")] = 0.5
    shrink: Annotated[float, Ge(0)] = 0.0

    def _find_neighbours(self, vectors: Matrix) -> Matrix:
        gpu = find_accelerator(self.device)
        if gpu is not None and dense_is_faster(vectors):
            similarity = Similarity_of_neighbours(self.similarity, self.alpha, self.shrink)
            return find_nearest_on_device(vectors, self.neighbors, similarity, gpu)
        return find_nearest(
            vectors, self.neighbors, kind=self.similarity, alpha=self.alpha, shrink=self.shrink
        )


@dataclass(frozen=True, kw_only=True)
class ItemKNN(_KNN):
    """Recommend items that are similar to the items of the user's history.

        score(u, i) = Σ_{j in N(i)} r_uj s_ij

    ``r_uj`` is 1 if user u has item j, ``s_ij`` the similarity of two
    items by their common users, and ``N(i)`` the ``neighbors`` items most similar to the candidate
    item i, without i itself. Using the neighbours of the history item j instead is less accurate.
    A user without training items has an empty list.

    Args:
        neighbors: Number of neighbours per item.
        similarity: ``cosine``, ``asymmetric`` (cosine with ``alpha``), ``jaccard`` or ``dice``.
        alpha: 0.5 is cosine, 1 is the share of j's users who have i.
        shrink: Added to the denominator of the similarity to discount small overlaps.
        device: Where the neighbours are found, unless the catalogue is so large that a CPU is
            faster, and the lists are ranked.

    Raises:
        TooLittleMemory: A GPU cannot hold the interactions and the similarities of one item.

    Source:
        Deshpande and Karypis, "Item-Based Top-N Recommendation Algorithms", ACM TOIS 22(1), 2004,
        section 4; Aiolli, RecSys 2013, section 4 (asymmetric cosine).
    """

    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedKNN:
        """Find the neighbours of each item."""
        return self.wrap(self._find_neighbours(data.train.binary.T.tocsr()))


@dataclass(frozen=True, kw_only=True)
class UserKNN(_KNN):
    """Recommend the items of similar users.

        score(u, i) = Σ_{v in N(u)} s_uv r_vi

    ``s_uv`` is the similarity of two users by their common items, ``r_vi`` is 1
    if user v has item i, and ``N(u)`` the ``neighbors`` users most similar to u,
    without u. A user without training items has an empty list; for a user without neighbours all
    items have score 0 and are ordered by item code.

    Args:
        neighbors: Number of neighbours per user.
        similarity: ``cosine``, ``asymmetric`` (cosine with ``alpha``), ``jaccard`` or ``dice``.
        alpha: 0.5 is cosine, 1 is the share of v's items that u has.
        shrink: Added to the denominator of the similarity to discount small overlaps.
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

    of_users: ClassVar[bool] = True

    variant: Literal["paper", "elliot"] = "paper"
    device: Device = "auto"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedKNN:
        """Find the neighbours of each user."""
        neighbours = self._find_neighbours(data.train.binary)
        return self.wrap(neighbours.T.tocsr() if self.variant == "elliot" else neighbours)


@dataclass(frozen=True, eq=False)
class _FittedKNN:
    """The neighbours of each item or user."""

    neighbours: Matrix  # CSR ``float32 (n, n)``: row t holds the similarities of ``N(t)``
    of_users: bool  # Whether they are those of users
    device: Device = "cpu"  # Where scores are computed and ranked

    def state(self) -> State:
        return store_matrix(self.neighbours)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        history = data.train.binary
        factors = (history, self.neighbours.T.tocsr())
        if self.of_users:
            factors = (self.neighbours, history)
        return rank_product(*factors, queries, k, data, self.device)


Similarity: TypeAlias = Literal[
    "cosine", "jaccard", "dice", "dot", "euclidean", "braycurtis", "chebyshev"
]
"""The similarities of attribute vectors."""

_OUTCOME = "their scores are all 0"  # The consequence for users whose items have no attributes
_USER_BLOCK = 4096  # Number of users whose profiles are computed together


@dataclass(frozen=True, kw_only=True)
class _AttributeKNN(_NeighbourModel):
    """The settings of the attribute-based models."""

    needs: ClassVar[frozenset[str]] = frozenset({"train", "items"})

    attributes: Annotated[tuple[str, ...], MinLen(1)] = ("genres",)
    profile: _Profile = "binary"
    neighbors: Annotated[int, Gt(0)] = 100
    similarity: Similarity = "cosine"

    def check_data(self, data: TrainingData) -> None:
        """Raise UnknownColumn if the items do not have the columns."""
        _validate_columns(data, self.attributes)


@dataclass(frozen=True, kw_only=True)
class AttributeItemKNN(_AttributeKNN):
    """Recommend items whose attributes are similar to those of the user's items.

        score(u, i) = Σ_{j in N(i)} r_uj s_ij

    ``r_uj`` is 1 if user u has item j, ``s_ij`` the similarity of two
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

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Gantner, Rendle, Freudenthaler and Schmidt-Thieme, "MyMediaLite: A Free Recommender System
        Library", RecSys 2011 (its attribute-based item kNN).
    """

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedKNN:
        """Find the neighbours of each item."""
        vectors = compute_item_vectors(count_terms(data, self.attributes), self.profile)
        warn_about_missing_terms("AttributeItemKNN", data, vectors, outcome=_OUTCOME)
        return self.wrap(find_neighbours(vectors, self.neighbors, kind=self.similarity))


@dataclass(frozen=True, kw_only=True)
class AttributeUserKNN(_AttributeKNN):
    """Recommend the items of users whose items have similar attributes.

        score(u, i) = Σ_{v in N(u)} s_uv r_vi,    a_u = 1/|I_u| Σ_{j in I_u} v_j

    ``a_u`` is the profile of user u, the mean of the attribute vectors ``v_j`` of the user's
    training items ``I_u`` (for ``binary``, the share of the items that have each attribute),
    ``s_uv`` the similarity of two profiles, ``N(u)`` the ``neighbors`` users most similar to u,
    without u, and ``r_vi`` is 1 if user v has item i. The distances d
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
        variant: ``elliot`` uses reverse neighbours: the users who have u among their own nearest.
            With ``tfidf`` it takes the weight of each attribute from the user's last training item
            that has it, with idf ``ln(N / n)``, as that framework does.

    Raises:
        UnknownColumn: The items have no such column.

    Source:
        Pazzani, "A Framework for Collaborative, Content-Based and Demographic Filtering",
        Artificial Intelligence Review 13, 1999 (collaboration via content).
    """

    of_users: ClassVar[bool] = True

    variant: Variant = "paper"

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedKNN:
        """Find the neighbours of each user."""
        counts = count_terms(data, self.attributes)
        vectors = compute_item_vectors(counts, self.profile, variant=self.variant)
        warn_about_missing_terms("AttributeUserKNN", data, vectors, outcome=_OUTCOME)
        profiles = self._compute_profiles(data, vectors)
        neighbours = find_neighbours(profiles, self.neighbors, kind=self.similarity)
        return self.wrap(neighbours.T.tocsr() if self.variant == "elliot" else neighbours)

    def _compute_profiles(self, data: TrainingData, vectors: Matrix) -> Matrix:
        from scipy.sparse import vstack

        use_last = self.variant == "elliot" and self.profile == "tfidf"
        combine = select_last_weights if use_last else average_item_vectors
        starts = range(0, max(data.train.n_users, 1), _USER_BLOCK)
        codes = np.arange(data.train.n_users, dtype=np.int32)
        blocks = [codes[start : start + _USER_BLOCK] for start in starts]
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


_VectorSimilarity: TypeAlias = Literal["cosine", "correlation"]
"""The similarity of a user vector and an item vector."""

_BYTES_PER_TERM = 24  # Memory per term of a user's profile while it is computed and multiplied

_USER_SAMPLE = 256
"""Number of users whose profiles decide whether sparse or dense products are faster."""

_ROUNDING = 1e-6
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
    terms: _Terms = "values"
    user_profile: _Profile = "tfidf"
    item_profile: _Profile = "tfidf"
    similarity: _VectorSimilarity = "cosine"
    variant: Variant = "paper"

    def check_data(self, data: TrainingData) -> None:
        """Raise UnknownColumn if the items do not have the columns."""
        _validate_columns(data, self.attributes)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> _FittedVSM:
        """Count the terms of each item."""
        fitted = _FittedVSM(self, count_terms(data, self.attributes, self.terms))
        vectors = fitted.vectors(self.item_profile)
        warn_about_missing_terms("VSM", data, vectors, outcome="their lists are empty")
        return fitted

    def restore(self, state: State) -> _FittedVSM:
        """Return the fitted recommender of a stored state."""
        return _FittedVSM(self, restore_matrix(state))


@dataclass(frozen=True, eq=False)
class _FittedVSM:
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

    def vectors(self, profile: _Profile) -> Matrix:
        """Return the vectors of the items, CSR ``float32 (n_items, n_terms)``."""
        return compute_item_vectors(self.counts, profile, variant=self.model.variant)

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return one list per query, best item first."""
        vectors, similarity = self.vectors(self.model.user_profile), self.model.similarity
        items = _Norms.compute(self.vectors(self.model.item_profile), similarity)
        columns = items.vectors.T.tocsr()
        sample = np.arange(min(data.train.n_users, _USER_SAMPLE), dtype=np.int32)
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
        share = score_bytes / (score_bytes + _BYTES_PER_TERM * n_terms + 1)
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
    def compute(cls, vectors: Matrix, similarity: _VectorSimilarity) -> _Norms:
        n_terms = vectors.shape[1]
        precise = vectors.astype(np.float64)
        squares = np.asarray((precise * precise).sum(axis=1)).ravel()
        means = np.asarray(precise.sum(axis=1)).ravel() / max(n_terms, 1)
        means *= similarity == "correlation"
        centred = squares - n_terms * means**2
        centred[centred <= _ROUNDING * squares] = np.nan
        return cls(vectors, means, np.sqrt(centred))
