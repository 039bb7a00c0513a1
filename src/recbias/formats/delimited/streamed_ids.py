"""Identifiers of a table that is read in blocks, as codes: their texts are never held at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import AnyArray
from recbias.formats.delimited.arrow_reader import count_digits

NO_CODE = -1
"""The code in a table of numbers of one that has not appeared yet."""

DENSE, LEAST_SIZE, MOST_SIZE = 4, 2**20, 2**27
"""A table of numbers has at most so many entries for each row that was read; it may always have
the second number of entries, and never more than the third."""


@dataclass
class StreamedIds:
    """The identifiers of a column, each with a code from 0 that later blocks keep.

    Whole numbers in their usual form, such as ``12`` but not ``012``, are looked up in a table of
    numbers; after the first block with another identifier all are looked up as texts.

    >>> ids = StreamedIds()
    >>> ids.encode(pa.chunked_array([["7", "12", "7"]])).tolist()
    [0, 1, 0]
    >>> ids.encode(pa.chunked_array([["12", "012"]])).tolist()
    [1, 2]
    """

    texts: list[str] = field(default_factory=list)
    n_rows: int = 0
    _code_of: dict[str, int] = field(default_factory=dict)
    _table: AnyArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    _is_numeric: bool = True

    def encode(self, column: Any) -> Any:
        """Return the codes of a block, ``int32[n]``, for a column of text."""
        self.n_rows += len(column)
        numbers = _read_numbers(column) if self._is_numeric else None
        limit = min(max(DENSE * self.n_rows, LEAST_SIZE), MOST_SIZE)
        if numbers is not None and numbers.max(initial=0) < limit:
            return self._encode_numbers(numbers)
        self._is_numeric = False
        return self._encode_texts(column)

    def _encode_numbers(self, numbers: AnyArray) -> AnyArray:
        n_missing = int(numbers.max(initial=-1)) + 1 - self._table.size
        if n_missing > 0:
            grown = np.full(max(n_missing, self._table.size), NO_CODE, dtype=np.int32)
            self._table = np.concatenate([self._table, grown])
        codes = self._table[numbers]
        is_new = codes == NO_CODE
        if is_new.any():
            new = np.unique(numbers[is_new])
            first = len(self.texts)
            self._table[new] = np.arange(first, first + new.size, dtype=np.int32)
            self.texts += map(str, new.tolist())
            codes = self._table[numbers]
        return codes

    def _encode_texts(self, column: Any) -> AnyArray:
        code_of = self._code_of
        if len(code_of) < len(self.texts):
            code_of |= {text: code for code, text in enumerate(self.texts)}
        encoded = column.dictionary_encode().unify_dictionaries()
        if not len(encoded):
            return np.empty(0, dtype=np.int32)
        texts = encoded.chunk(0).dictionary.to_pylist()
        codes = np.array([code_of.setdefault(text, len(code_of)) for text in texts], np.int32)
        self.texts += islice(code_of, len(self.texts), None)
        return np.concatenate([codes[np.asarray(chunk.indices)] for chunk in encoded.chunks])

    def decode(self, codes: Any) -> Any:
        """Return the dictionary-encoded column of the codes of all blocks."""
        return pa.DictionaryArray.from_arrays(
            _join(codes.chunks), pa.array(self.texts, pa.string())
        )


@dataclass
class IdEncoder:
    """Replaces the columns of identifiers of the blocks of a table by codes.

    Args:
        names: The columns of identifiers.
    """

    names: Iterable[str]

    def __post_init__(self) -> None:
        self._ids = {name: StreamedIds() for name in self.names}

    def encode(self, table: Any) -> Any:
        """Return the table of a block with codes for identifiers."""
        return self._replace(
            table, {n: pa.array(ids.encode(table[n])) for n, ids in self._ids.items()}
        )

    def decode(self, table: Any) -> Any:
        """Return the table of all blocks with dictionary-encoded identifiers."""
        return self._replace(table, {n: ids.decode(table[n]) for n, ids in self._ids.items()})

    def _replace(self, table: Any, columns: dict[str, Any]) -> Any:
        return pa.table({name: columns.get(name, table[name]) for name in table.column_names})


def _read_numbers(column: Any) -> AnyArray | None:
    """Return a column as whole numbers from 0; None if one is not written in its usual form.

    A text has no fewer characters than its number has digits, so that the totals are equal only if
    all are.
    """
    try:
        numbers = np.asarray(column.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid:
        return None
    if numbers.min(initial=0) < 0:
        return None
    n_characters = pc.sum(pc.binary_length(column)).as_py() or 0
    return numbers if count_digits(numbers) == n_characters else None


def _join(chunks: list[Any]) -> AnyArray:
    arrays = [np.asarray(chunk) for chunk in chunks]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
