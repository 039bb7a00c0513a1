"""What items are like, by their attributes or words, and what users are like by their items."""

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
"""What counts of a column: each of its values (``a|b`` has two), or each word of its text."""

Profile: TypeAlias = Literal["binary", "tfidf"]
"""How a term of an item weighs: 1, or by how often it stands there and how rare it is."""

Variant: TypeAlias = Literal["paper", "elliot"]
"""As its source defines the model, or as the framework Elliot 0.3.1 works it out."""


def term_counts(data: TrainingData, columns: Sequence[str], terms: Terms = "values") -> Matrix:
    """Return how often each term stands in each candidate item.

    Items that nobody has in training have no terms here: they cannot be recommended, and speak
    for nothing.

    Args:
        data: The training data.
        columns: Columns of the items; a value of one column is another term than that value of
            another, a word is the same in all.
        terms: ``values`` or ``words`` (of two letters or more, in lower case).

    Returns:
        CSR ``float32 (n_items, n_terms)``.

    Raises:
        MissingEvidence: Nothing is known of the items.
        UnknownColumn: The items have no such column.
    """
    from scipy.sparse import csr_array, diags_array, hstack

    if data.items is None:
        raise MissingEvidence("nothing is known of the items", remedy="give an items table")
    known = [_column(data.items, name) for name in columns]
    if terms == "words":
        counts = _word_counts(known)
    else:
        counts = hstack([data.items.membership(name).matrix for name in columns])
    kept = diags_array(data.candidates.astype(np.float32))
    counts = csr_array(kept @ counts.astype(np.float32))
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


def item_vectors(counts: Matrix, profile: Profile, *, variant: Variant = "paper") -> Matrix:
    """Return the vector of each item over the terms.

        binary  v_it = 1
        tfidf   v_it = f_it idf_t / |f_i idf|,  idf_t = 1 + ln((1 + N) / (1 + n_t))

    where ``f_it`` is how often term t stands in item i, ``n_t`` in how many items it stands, and
    ``N`` how many have a term at all. In the ``elliot`` variant ``idf_t = ln(N / n_t)``: an item
    whose terms are those of all items is of nothing there.

    Args:
        counts: ``f``, CSR ``float32 (n_items, n_terms)``.
        profile: ``binary`` or ``tfidf``.
        variant: Whose idf.

    Returns:
        CSR ``float32`` of that shape.

    >>> from scipy.sparse import csr_array
    >>> counts = csr_array(np.array([[2, 0], [1, 3]], dtype=np.float32))
    >>> item_vectors(counts, "binary").toarray().tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    from scipy.sparse import csr_array

    vectors = csr_array(counts, copy=True)
    if profile == "binary":
        vectors.data[:] = 1
        return vectors
    vectors.data *= _idf(counts, int(variant == "paper"))[vectors.indices]
    lengths = np.sqrt(np.asarray((vectors * vectors).sum(axis=1))).ravel()
    lengths[lengths == 0] = 1
    vectors.data /= np.repeat(lengths, np.diff(vectors.indptr)).astype(np.float32)
    vectors.eliminate_zeros()
    return vectors


def mean_vectors(train: Interactions, vectors: Matrix, users: Codes) -> Matrix:
    """Return the mean of the vectors of each user's training items, CSR ``(b, n_terms)``.

    Args:
        train: The training rows.
        vectors: CSR ``float32 (n_items, n_terms)``.
        users: Codes, ``int32[b]``; a user without training items has a vector of nothing.
    """
    own = train.binary[users]
    n_own = np.diff(own.indptr)
    sums = (own @ vectors).tocsr()
    shares = 1 / np.maximum(n_own, 1).astype(np.float32)
    sums.data *= np.repeat(shares, np.diff(sums.indptr))
    return sums


def last_vectors(train: Interactions, vectors: Matrix, users: Codes) -> Matrix:
    """Return, for each user and term, the weight in the LAST training item that has the term.

    Args:
        train: The training rows; the last is the one that stands lowest.
        vectors: CSR ``float32 (n_items, n_terms)``.
        users: Codes, ``int32[b]``.

    Returns:
        CSR ``float32 (b, n_terms)``.
    """
    from scipy.sparse import coo_array

    distinct, back = np.unique(users, return_inverse=True)
    place = np.full(train.n_users, -1, dtype=np.int64)
    place[distinct] = np.arange(distinct.size)
    rows = np.flatnonzero(place[train.users] >= 0)[::-1]
    carried = vectors[train.items[rows]]
    who = np.repeat(place[train.users[rows]], np.diff(carried.indptr))
    keys, first = np.unique(who * vectors.shape[1] + carried.indices, return_index=True)
    cells = np.divmod(keys, max(vectors.shape[1], 1))
    shape = (distinct.size, vectors.shape[1])
    return coo_array((carried.data[first], cells), shape=shape).tocsr()[back]


def warn_of_nothing(who: str, data: TrainingData, vectors: Matrix, *, outcome: str) -> None:
    """Note how many candidates have no attribute, and how many users have only such items.

    Args:
        who: The model.
        data: The training data.
        vectors: CSR ``(n_items, n_terms)``.
        outcome: What becomes of those users.
    """
    bare = data.candidates & ~has_terms(vectors)
    if not bare.any():
        return
    described = data.train.binary @ has_terms(vectors).astype(np.float32)
    active = data.train.user_counts() > 0
    items = f"{np.count_nonzero(bare):,} of {np.count_nonzero(data.candidates):,} items"
    lost = f"{np.count_nonzero(active & (described == 0)):,} of {np.count_nonzero(active):,} users"
    warn(f"{who}: {items} have no attribute; {lost} have only such items: {outcome}")


def has_terms(vectors: Matrix) -> BoolArray:
    """Return which rows are not of nothing, ``bool[n]``."""
    present: BoolArray = np.diff(vectors.indptr) > 0
    return present


def _idf(counts: Matrix, smooth: int) -> AnyArray:
    """Return the weight of each term, ``float32[n_terms]``; of one that no item has, any."""
    n_items = np.count_nonzero(has_terms(counts))
    with_term = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.maximum(smooth + n_items, 1) / np.maximum(smooth + with_term, 1)
    weights: AnyArray = (smooth + np.log(rarity)).astype(np.float32)
    return weights


def refuse_unknown(data: TrainingData, attributes: Sequence[str]) -> None:
    """Raise UnknownColumn for a column that the items do not have."""
    if data.items is not None:
        for name in attributes:
            _column(data.items, name)


def _column(items: Attributes, name: str) -> Any:
    try:
        return items.column(name)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where="attributes", remedy=error.remedy) from error


def _word_counts(columns: Sequence[Any]) -> Matrix:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [each.where(each.notna(), "").astype(str).reset_index(drop=True) for each in columns]
    joined = texts[0].str.cat(texts[1:], sep=" ") if texts[1:] else texts[0]
    words = CountVectorizer()
    analyse = words.build_analyzer()
    if not any(analyse(each) for each in joined):
        return csr_array((len(joined), 0), dtype=np.float32)
    found: AnyArray = words.fit_transform(joined)
    return found
