"""Conversion of identifiers to integer codes and back."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids, freeze
from recbias.core.errors import UnknownIdentifier
from recbias.core.suggestions import suggest


def sort_naturally(ids: Ids) -> npt.NDArray[np.intp]:
    """Return the order of unique identifiers: by number if all are whole numbers, else by text.

    >>> ids = np.array(["10", "9", "2"], dtype=object)
    >>> ids[sort_naturally(ids)].tolist()
    ['2', '9', '10']
    """
    if ids.size and all(len(text) < 18 and text.isascii() and text.isdigit() for text in ids):
        numbers = ids.astype(np.int64)
        if len(set(numbers.tolist())) == ids.size:
            return np.argsort(numbers, kind="stable")
    return np.argsort(ids.astype(object), kind="stable")


def _factorize(values: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the code of each value, and the distinct values in order of appearance."""
    codes, distinct = pd.factorize(values)
    distinct = np.asarray(distinct)
    if values.dtype.kind != "O" or not distinct.size:
        return codes, distinct
    if (distinct[codes] == values)[codes >= 0].all():
        return codes, distinct
    # pandas does not distinguish texts that differ only after a NUL character
    code_of: dict[object, int] = {}
    codes = np.array([code_of.setdefault(value, len(code_of)) for value in values], dtype=np.intp)
    return codes, np.array(list(code_of), dtype=object)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Unique identifiers, Python strings; the code of an identifier is its position."""

    ids: Ids

    def __post_init__(self) -> None:
        """Freeze the identifiers."""
        freeze(self.ids)

    def __len__(self) -> int:
        """Return the number of identifiers."""
        return int(self.ids.size)

    @classmethod
    def of(cls, ids: object) -> Vocabulary:
        """Return the vocabulary of identifiers in natural order; repeats count once."""
        return cls.encode(np.asarray(list(ids), dtype=object))[0]  # type: ignore[call-overload]

    @classmethod
    def encode(cls, values: AnyArray) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary of whole numbers or strings, and the code of each.

        >>> vocabulary, codes = Vocabulary.encode(np.array(["b", "a", "b"], dtype=object))
        >>> vocabulary.ids.tolist(), codes.tolist()
        (['a', 'b'], [1, 0, 1])
        """
        codes, distinct = _factorize(values)
        return cls.ordered(distinct, codes)

    @classmethod
    def ordered(cls, raw: AnyArray, raw_codes: AnyArray) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary of unique values in natural order, and the codes in that order."""
        if raw_codes.size and raw_codes.min() < 0:
            missing = int((raw_codes < 0).sum())
            raise UnknownIdentifier(f"{missing:,} row(s) have no identifier")
        if raw.dtype.kind in "iu":
            order = np.argsort(raw, kind="stable")
            ids = raw[order].astype(str).astype(object)
        else:
            texts = np.array([str(value) for value in raw], dtype=object)
            order = sort_naturally(texts)
            ids = texts[order]
        new_codes = np.empty(order.size, dtype=np.int32)
        new_codes[order] = np.arange(order.size, dtype=np.int32)
        return cls(ids), new_codes[raw_codes]

    @cached_property
    def _index(self) -> pd.Index[str]:
        return pd.Index(self.ids)

    def find(self, ids: AnyArray) -> Codes:
        """Return the code of each identifier, -1 for unknown ones."""
        return self._index.get_indexer(pd.Index(ids)).astype(np.int32)

    def codes(self, ids: AnyArray, *, kind: str = "identifier") -> Codes:
        """Return the code of each identifier; UnknownIdentifier for one that is not here."""
        codes = self.find(ids)
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            name = str(np.asarray(ids)[unknown[0]])
            message = f"{unknown.size:,} unknown {kind}(s), the first is {name!r}"
            raise UnknownIdentifier(message, remedy=suggest(name, self.ids.tolist()))
        return codes

    def take(self, codes: AnyArray) -> Vocabulary:
        """Return the vocabulary of some of the identifiers, in the order of ``codes``."""
        return Vocabulary(self.ids[codes])

    @cached_property
    def digest(self) -> str:
        """The content address: equal vocabularies have equal digests."""
        sha = hashlib.sha256()
        for name in self.ids:
            sha.update(name.encode("utf-8", "surrogatepass") + b"\0")
        return sha.hexdigest()
