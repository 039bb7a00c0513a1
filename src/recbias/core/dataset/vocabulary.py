"""Identifiers to dense codes and back."""

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


def natural_order(ids: Ids) -> npt.NDArray[np.intp]:
    """Return the order of unique identifiers: by number if all are whole numbers, else by text.

    The codes, and with them the order of ties, then do not depend on the order of a file's rows.

    >>> ids = np.array(["10", "9", "2"], dtype=object)
    >>> ids[natural_order(ids)].tolist()
    ['2', '9', '10']
    """
    if ids.size and all(len(each) < 18 and each.isascii() and each.isdigit() for each in ids):
        numbers = ids.astype(np.int64)
        if len(set(numbers.tolist())) == ids.size:
            return np.argsort(numbers, kind="stable")
    return np.argsort(ids.astype(object), kind="stable")


def _distinct(values: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the code of each value, and the distinct values in order of appearance.

    pandas takes texts for the same that differ behind a NUL only; such are told apart one by one.
    """
    codes, distinct = pd.factorize(values)
    kept = np.asarray(distinct)
    if values.dtype.kind != "O" or not kept.size or (kept[codes] == values)[codes >= 0].all():
        return codes, kept
    places: dict[object, int] = {}
    codes = np.array([places.setdefault(each, len(places)) for each in values], dtype=np.intp)
    return codes, np.array(list(places), dtype=object)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Ordered identifiers; the code of an identifier is its place.

    Args:
        ids: Unique identifiers, Python strings, in the order of their codes.
    """

    ids: Ids

    def __post_init__(self) -> None:
        """Freeze the identifiers."""
        freeze(self.ids)

    def __len__(self) -> int:
        """Return how many identifiers there are."""
        return int(self.ids.size)

    @classmethod
    def of(cls, ids: object) -> Vocabulary:
        """Return the vocabulary of the identifiers given, in natural order, each once."""
        return cls.encode(np.asarray(list(ids), dtype=object))[0]  # type: ignore[call-overload]

    @classmethod
    def encode(cls, values: AnyArray) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary of the values, and the code of each value.

        Args:
            values: One identifier a row, whole numbers or strings, repeats allowed.

        >>> words, codes = Vocabulary.encode(np.array(["b", "a", "b"], dtype=object))
        >>> words.ids.tolist(), codes.tolist()
        (['a', 'b'], [1, 0, 1])
        """
        raw_codes, raw = _distinct(values)
        return cls.ordered(np.asarray(raw), raw_codes)

    @classmethod
    def ordered(cls, raw: AnyArray, raw_codes: AnyArray) -> tuple[Vocabulary, Codes]:
        """Return the vocabulary of unique values in natural order, and the codes in that order.

        Raises:
            UnknownIdentifier: A code is -1: its row has no identifier.
        """
        if raw_codes.size and raw_codes.min() < 0:
            missing = int((raw_codes < 0).sum())
            raise UnknownIdentifier(f"{missing:,} row(s) have no identifier")
        if raw.dtype.kind in "iu":
            order = np.argsort(raw, kind="stable")
            ids = raw[order].astype(str).astype(object)
        else:
            texts = np.array([str(each) for each in raw], dtype=object)
            order = natural_order(texts)
            ids = texts[order]
        place = np.empty(order.size, dtype=np.int32)
        place[order] = np.arange(order.size, dtype=np.int32)
        return cls(ids), place[raw_codes]

    @cached_property
    def _index(self) -> pd.Index[str]:
        return pd.Index(self.ids)

    def find(self, ids: AnyArray) -> Codes:
        """Return the code of each identifier, -1 for those that are not here."""
        return self._index.get_indexer(pd.Index(ids)).astype(np.int32)

    def codes(self, ids: AnyArray, *, what: str = "identifier") -> Codes:
        """Return the code of each identifier.

        Raises:
            UnknownIdentifier: One of them is not here.
        """
        found = self.find(ids)
        if (found < 0).any():
            first = str(np.asarray(ids)[np.flatnonzero(found < 0)[0]])
            message = f"{int((found < 0).sum()):,} unknown {what}(s), the first is {first!r}"
            raise UnknownIdentifier(message, remedy=suggest(first, self.ids.tolist()))
        return found

    def take(self, codes: AnyArray) -> Vocabulary:
        """Return the vocabulary of some of the identifiers, in the order of ``codes``."""
        return Vocabulary(self.ids[codes])

    @cached_property
    def digest(self) -> str:
        """The content address: equal vocabularies share it."""
        sha = hashlib.sha256()
        for each in self.ids:
            sha.update(each.encode("utf-8", "surrogatepass") + b"\0")
        return sha.hexdigest()
