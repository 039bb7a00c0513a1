"""Columns of identifiers to one vocabulary and their codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.vocabulary import Vocabulary


def encode(*columns: Any) -> tuple[Vocabulary, list[Codes]]:
    """Return the vocabulary of all the columns together, and the codes of each.

    Args:
        columns: Arrow columns of identifiers, all of whole numbers or all of text without nulls.

    >>> import pyarrow as pa
    >>> ids, (ratings, movies) = encode(pa.array([10, 9, 10]), pa.array([2, 9]))
    >>> ids.ids.tolist(), ratings.tolist(), movies.tolist()
    (['2', '9', '10'], [2, 1, 2], [0, 1])
    """
    import pyarrow as pa

    if pa.types.is_integer(columns[0].type):
        values = [np.asarray(each.to_numpy()) for each in columns]
        vocabulary, codes = _encode_numbers(np.concatenate(values))
    else:
        vocabulary, codes = _encode_texts(columns)
    ends = np.cumsum([len(each) for each in columns])[:-1]
    return vocabulary, [np.ascontiguousarray(part) for part in np.split(codes, ends)]


def _encode_numbers(values: AnyArray) -> tuple[Vocabulary, Codes]:
    """Return the vocabulary and codes of whole numbers; a look-up table does where they are dense.

    The table is as long as the largest number, so it is made only where that is of the order of
    the number of rows.
    """
    if not values.size or values.min() < 0 or values.max() > 4 * values.size + 2**16:
        return Vocabulary.encode(values)
    rows = values.astype(np.intp)
    seen = np.zeros(int(values.max()) + 1, dtype=bool)
    seen[rows] = True
    ids = np.flatnonzero(seen)
    place = np.zeros(seen.size, dtype=np.int32)
    place[ids] = np.arange(ids.size, dtype=np.int32)
    return Vocabulary(np.array([str(each) for each in ids.tolist()], dtype=object)), place.take(
        rows
    )


def _encode_texts(columns: tuple[Any, ...]) -> tuple[Vocabulary, Codes]:
    import pyarrow as pa

    chunks = [chunk for each in columns for chunk in _chunks(each)]
    words = pa.chunked_array(chunks, type=pa.string()).dictionary_encode().unify_dictionaries()
    if not words.num_chunks:
        return Vocabulary.encode(np.empty(0, dtype=object))
    raw = np.array(words.chunk(0).dictionary.to_pylist(), dtype=object)
    codes = [np.asarray(chunk.indices) for chunk in words.chunks]
    return Vocabulary.ordered(raw, np.concatenate(codes))


def _chunks(column: Any) -> list[Any]:
    import pyarrow as pa

    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def repeats(codes: Codes) -> tuple[int, int]:
    """Return the places of the first code that comes a second time: (-1, -1) where none does.

    >>> repeats(np.array([4, 2, 4, 2])), repeats(np.array([1, 0]))
    ((0, 2), (-1, -1))
    """
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[place] != np.arange(codes.size))
    return (int(first[place[again[0]]]), int(again[0])) if again.size else (-1, -1)


def spread(codes: Codes, values: AnyArray, n: int) -> AnyArray:
    """Return a column over ``n`` identifiers: each value at its code, the others missing.

    >>> spread(np.array([2, 0]), np.array([1.5, 2.5]), 3).tolist()
    [2.5, nan, 1.5]
    """
    empty = None if values.dtype == object else np.nan
    column = np.full(n, empty, dtype=object if empty is None else np.float64)
    column[codes] = values
    return column
