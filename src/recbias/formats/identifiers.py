"""Identifiers: their vocabulary and codes, and the columns of a table in their order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, Codes, Ids, Vocabulary
from recbias.core.errors import UnknownIdentifier
from recbias.core.text import suggest


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
        vocabulary, codes = Vocabulary.encode(np.concatenate(values))
    else:
        vocabulary, codes = _encode_texts(columns)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return vocabulary, [np.ascontiguousarray(column) for column in np.split(codes, ends)]


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


def check_ids(  # noqa: PLR0913  what is compared, and how it is said
    ids: Ids,
    known: Vocabulary,
    noun: str,
    where: str,
    *,
    may_lack: bool = False,
    is_needed: bool = True,
    remedy: str = "",
) -> None:
    """Warn of identifiers of a file that a dataset lacks, with the way it may write them.

    Args:
        ids: The different identifiers.
        known: Those of the dataset; if there are none, nothing is compared.
        noun: What they denote.
        where: The file.
        may_lack: Whether only those are warned of that it writes otherwise.
        is_needed: Whether it must have one of them also if it writes none otherwise.
        remedy: What to do if it has none; by default, use its ids.

    Raises:
        UnknownIdentifier: It has none.
    """
    unknown = ids[known.find(ids) < 0]
    if not unknown.size or not len(known):
        return
    spelling, name = known.compare_spelling(unknown), Path(where).name
    if unknown.size == ids.size and (spelling or is_needed):
        message = f"none of the {ids.size:,} {noun} of {name} is in the dataset: it has "
        message += f"{list_some(ids)}, the dataset {list_some(known.ids)}"
        usual = "use the ids of the dataset, not the internal numbers of a tool: "
        remedy = spelling or remedy or usual + suggest(str(ids[0]), known.ids)
        raise UnknownIdentifier(message, where=where, remedy=remedy)
    if spelling or not may_lack:
        count = f"{name}: {unknown.size:,} of {ids.size:,} {noun} are not in the dataset"
        warn(": ".join(filter(None, [count, spelling])))


_WHOLE = r"^[0-9]+$"
_SEVERAL = r"^\[.*\]$|^\{.*\}$|^[0-9]+(?:[,;| ]+[0-9]+)+$"
_ODD = r"^[^\pL\pN]*[\p{Nd}.,']+(?:[eE][+-]?\p{Nd}+)?[^\pL\pN]*$"
NO_VALUE = r"(?i:nan|<na>|nat|#?n/a)|null|NULL|NA"
"""How other programs write a missing cell as text, as R does by NA; Null is a name."""


def question_ids(ids: Ids, noun: str, name: str) -> None:
    """Warn of identifiers of a file that may be several, no value, or numbers written otherwise.

    Args:
        ids: The different identifiers.
        noun: What they denote.
        name: The file.
    """
    texts = pa.array(ids, pa.string())

    def find(pattern: str) -> BoolArray:
        return np.asarray(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False))

    is_plain = find(_WHOLE)
    if is_plain.all():
        return
    known = {*ids}
    is_joined = find(_SEVERAL)
    for row in np.flatnonzero(find("[,;|]") & ~is_joined):
        is_joined[row] = known.issuperset(part.strip() for part in re.split("[,;|]", ids[row]))
    is_odd = find(f"^(?:{NO_VALUE}|None)$")
    if 2 * np.count_nonzero(is_plain) >= ids.size:
        is_odd |= find(_ODD) & ~is_plain & ~is_joined
    for is_found, problem, remedy in (
        (is_joined, "may be several in one cell", "write each into a row of its own"),
        (is_odd, "may stand for no value, or for a number in another form", "read as written"),
    ):
        if is_found.any():
            count = f"{np.count_nonzero(is_found):,} of {ids.size:,} {noun}"
            warn(f"{name}: {count} {problem}: {list_some(ids[is_found])}; {remedy}")


def list_some(ids: Ids) -> str:
    """Return the first identifiers, for messages."""
    return ", ".join(map(repr, ids[:3])) + (", ..." if ids.size > 3 else "")


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


def to_texts(column: Any) -> Ids:
    """Return a column of text, None for null and for an empty text."""
    texts = np.array(column.to_numpy(zero_copy_only=False), dtype=object)
    texts[texts == ""] = None
    return texts
