"""Vectors of items over their attributes or words, and of users over those of their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.core.stage_context import warn

Terms: TypeAlias = Literal["values", "words"]
"""The terms of a column: its values (``a|b`` has two), or the words of its text."""

Profile: TypeAlias = Literal["binary", "tfidf"]  # The weight of a term of an item: 1, or tf-idf

Variant: TypeAlias = Literal["paper", "elliot"]
"""The definition of the source, or that of the framework Elliot 0.3.1."""


def count_terms(data: TrainingData, columns: Sequence[str], terms: Terms = "values") -> Matrix:
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
    counts: Matrix, profile: Profile, *, variant: Variant = "paper"
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


def validate_columns(data: TrainingData, attributes: Sequence[str]) -> None:
    """Raise UnknownColumn for a column that the items do not have."""
    if data.items is not None:
        for name in attributes:
            _read_column(data.items, name)


def _read_column(items: Attributes, name: str) -> Any:
    try:
        return items.column(name)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where="attributes", remedy=error.remedy) from error


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
