"""Identifiers to a vocabulary and integer codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary


def encode(*columns: Any) -> tuple[Vocabulary, list[Codes]]:
    """Return the common vocabulary of some columns, and the codes of each column.

    Args:
        columns: Arrow columns of identifiers, all of whole numbers or all of text without nulls,
            plain or dictionary-encoded.

    >>> import pyarrow as pa
    >>> ids, (ratings, movies) = encode(pa.array([10, 9, 10]), pa.array([2, 9]))
    >>> ids.ids.tolist(), ratings.tolist(), movies.tolist()
    (['2', '9', '10'], [2, 1, 2], [0, 1])
    """
    if pa.types.is_integer(columns[0].type):
        values = [np.asarray(column.to_numpy()) for column in columns]
        vocabulary, codes = _encode_numbers(np.concatenate(values))
    else:
        vocabulary, codes = _encode_texts(columns)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return vocabulary, [np.ascontiguousarray(column) for column in np.split(codes, ends)]


def _encode_numbers(values: AnyArray) -> tuple[Vocabulary, Codes]:
    """Return the vocabulary and codes of whole numbers, by a look-up table if they are dense."""
    if not values.size or values.min() < 0 or values.max() > 4 * values.size + 2**16:
        return Vocabulary.encode(values)
    rows = values.astype(np.intp)
    occurs = np.zeros(int(values.max()) + 1, dtype=bool)
    occurs[rows] = True
    numbers = np.flatnonzero(occurs)
    code_of = np.zeros(occurs.size, dtype=np.int32)
    code_of[numbers] = np.arange(numbers.size, dtype=np.int32)
    ids = np.array([str(number) for number in numbers.tolist()], dtype=object)
    return Vocabulary(ids), code_of.take(rows)


def _encode_texts(columns: tuple[Any, ...]) -> tuple[Vocabulary, Codes]:
    chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
    filled = [_encode_chunk(chunk) for chunk in chunks if len(chunk)]
    if not filled:
        return Vocabulary.encode(np.empty(0, dtype=object))
    encoded = pa.chunked_array(filled).unify_dictionaries()
    ids = np.array(encoded.chunk(0).dictionary.to_pylist(), dtype=object)
    parts = [np.asarray(chunk.indices) for chunk in encoded.chunks]
    codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
    occurs = np.zeros(ids.size, dtype=bool)
    occurs[codes] = True
    if not occurs.all():  # the rows of an identifier may have been left out
        codes = (np.cumsum(occurs, dtype=np.int32) - np.int32(1))[codes]
    return Vocabulary.ordered(ids[occurs], codes)


def _encode_chunk(chunk: Any) -> Any:
    """Return a dictionary-encoded array as it is, and any other one encoded as text."""
    is_encoded = pa.types.is_dictionary(chunk.type)
    return chunk if is_encoded else chunk.cast(pa.string()).dictionary_encode()


def find_repeat(codes: AnyArray) -> tuple[int, int]:
    """Return the positions of the first code that repeats: (-1, -1) if all are distinct.

    >>> find_repeat(np.array([4, 2, 4, 2])), find_repeat(np.array([1, 0]))
    ((0, 2), (-1, -1))
    """
    repeats = np.flatnonzero(pd.Series(codes).duplicated())
    if not repeats.size:
        return -1, -1
    return int((codes == codes[repeats[0]]).argmax()), int(repeats[0])


def align_columns(
    codes: Codes, columns: Mapping[str, AnyArray], ids: Vocabulary, kind: str
) -> Attributes:
    """Return columns whose rows have the given codes in the order of the identifiers."""
    aligned = {name: scatter(codes, column, len(ids)) for name, column in columns.items()}
    return Attributes(ids, pd.DataFrame(aligned, index=range(len(ids))), kind)


def scatter(codes: Codes, values: AnyArray, n: int) -> AnyArray:
    """Return a column over ``n`` identifiers with each value at its code; the rest is missing.

    >>> scatter(np.array([2, 0]), np.array([1.5, 2.5]), 3).tolist()
    [2.5, nan, 1.5]
    """
    missing = None if values.dtype == object else np.nan
    column = np.full(n, missing, dtype=object if missing is None else np.float64)
    column[codes] = values
    return column
