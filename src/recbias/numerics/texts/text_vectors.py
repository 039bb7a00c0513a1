"""Similarity of texts by the vectors of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Matrix


def count_vectors(texts: Sequence[Sequence[int]], n_vectors: int) -> Matrix:
    """Return how often each text has each token, CSR ``float64 (texts, n_vectors)``.

    Texts are lists of the rows of their tokens in a table of vectors; a token without a vector has
    a row below 0 and is left out.
    """
    from scipy.sparse import csr_array

    lengths = np.array([len(tokens) for tokens in texts], dtype=np.int64)
    codes = np.fromiter(chain.from_iterable(texts), dtype=np.int64, count=int(lengths.sum()))
    rows = np.repeat(np.arange(lengths.size), lengths)
    rows, codes = rows[codes >= 0], codes[codes >= 0]
    counts = csr_array((np.ones(codes.size), (rows, codes)), shape=(lengths.size, n_vectors))
    counts.sum_duplicates()
    return counts


def embedding_average(counts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
    """Return the cosine of the mean vectors of each text and its reference, ``float64[n]``.

        cos(x̄, ȳ),    x̄ = (1/|x|) Σ_{w ∈ x} e_w

    Args:
        counts: The tokens of the texts, as ``count_vectors`` returns them.
        references: Those of the references.
        vectors: The vectors e_w, ``(n_vectors, d)``.

    Returns:
        NaN where a text has no token with a vector, or its vectors add up to 0.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> texts, references = count_vectors([[0, 1], []], 2), count_vectors([[0], [0]], 2)
    >>> embedding_average(texts, references, vectors).round(4).tolist()
    [0.7071, nan]

    Source:
        Liu et al., "How not to evaluate your dialogue system", EMNLP 2016, section 4.2.
    """
    wide = np.asarray(vectors, np.float64)
    sums = [_divide_by_length(np.asarray(table @ wide)) for table in (counts, references)]
    return np.asarray(np.clip((sums[0] * sums[1]).sum(axis=1), -1.0, 1.0))


def greedy_matching(counts: Matrix, references: Matrix, vectors: AnyArray) -> FloatArray:
    """Return the mean similarity of each token to the nearest of the other text, ``float64[n]``.

        GM = (G(x, y) + G(y, x)) / 2,    G(x, y) = (1/|x|) Σ_{w ∈ x} max_{v ∈ y} cos(e_w, e_v)

    Arguments are as for ``embedding_average``. |x| is the number of tokens with a vector other
    than 0, and only these are matched.

    Returns:
        NaN where a text has no such token.

    >>> vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> texts, references = count_vectors([[0, 1, 1]], 2), count_vectors([[0]], 2)
    >>> greedy_matching(texts, references, vectors).round(4).tolist()  # (1/3 + 1) / 2
    [0.6667]

    Source:
        Rus and Lintean, "A comparison of greedy and optimal assessment of natural language student
        input using word-to-word similarity metrics", BEA 2012; for dialogue: Liu et al. 2016,
        section 4.2.
    """
    unit = _divide_by_length(np.asarray(vectors, np.float64))
    has_direction: AnyArray = np.asarray(~np.isnan(unit).any(axis=1))
    values = np.full(counts.shape[0], np.nan)
    for row in range(values.size):
        (x, n_x), (y, n_y) = (
            _get_row(table, row, has_direction) for table in (counts, references)
        )
        if x.size and y.size:
            cosines = unit[x] @ unit[y].T
            forward = n_x @ cosines.max(axis=1) / n_x.sum()
            values[row] = (forward + n_y @ cosines.max(axis=0) / n_y.sum()) / 2.0
    return np.asarray(np.clip(values, -1.0, 1.0))


def _get_row(counts: Matrix, row: int, is_kept: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the distinct tokens of a text, and how often each occurs."""
    part = slice(counts.indptr[row], counts.indptr[row + 1])
    tokens, numbers = counts.indices[part], counts.data[part]
    return tokens[is_kept[tokens]], numbers[is_kept[tokens]]


def _divide_by_length(vectors: FloatArray) -> FloatArray:
    """Return vectors of length 1; NaN for one that is 0."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    scaled = np.divide(vectors, largest, out=np.full(vectors.shape, np.nan), where=largest > 0)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
