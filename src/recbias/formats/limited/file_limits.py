"""The limits of files, which stop a damaged or hostile file before it fills the memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.errors import MalformedLine, WrongType

COLUMNS, CELL = "RECBIAS_MAX_COLUMNS", "RECBIAS_MAX_CELL"
"""The environment variables that set limits."""

_DEFAULTS = {COLUMNS: 16_384, CELL: 10**7}

MAX_RATIO = 200
"""Bytes of unpacked data for each byte of a compressed file."""

FREE_BYTES = 64 * 2**20
"""Bytes of unpacked data that every compressed file may have."""


def get_limit(variable: str) -> int:
    """Return the largest number of columns (``COLUMNS``) or of characters in a cell (``CELL``).

    Raises:
        WrongType: The environment variable is not a whole number above 0.
    """
    text = os.environ.get(variable, "")
    if not text:
        return _DEFAULTS[variable]
    if not text.isdecimal() or not int(text[:18]):
        message = f"the environment variable {variable} is {text!r}"
        remedy = f"set it to a whole number, as in {variable}={_DEFAULTS[variable]}"
        raise WrongType(message, where=variable, remedy=remedy)
    return int(text[:18])


def check_columns(names: Sequence[str], where: str) -> None:
    """Raise MalformedLine if a table has too many columns, or two of one name."""
    if len(names) > (limit := get_limit(COLUMNS)):
        message = f"has {len(names):,} columns, more than {limit:,}"
        remedy = f"remove columns, or set the environment variable {COLUMNS}={len(names)}"
        raise MalformedLine(message, where=where, remedy=remedy)
    name, count = next(iter(Counter(names).most_common(1)), ("", 1))
    if count > 1:
        message = f"two columns are called {name[:80]!r}"
        raise MalformedLine(message, where=where, remedy="give each column its own name")


def describe_long_cell() -> tuple[str, str]:
    """Return the message and the remedy for a cell that is too long."""
    limit = get_limit(CELL)
    message = f"a cell has more than {limit:,} characters"
    return message, f"shorten it, or set the environment variable {CELL}, now {limit}"


def may_have_long_cells(columns: Iterable[Any]) -> bool:
    """Return whether a text in Arrow columns has more bytes than a cell may have characters."""
    limit = get_limit(CELL)
    texts = (column for column in columns if pa.types.is_string(column.type))
    return any((pc.max(pc.binary_length(column)).as_py() or 0) > limit for column in texts)


def refuse_long_cells(columns: Mapping[str, Any], locate: Callable[[int], str]) -> None:
    """Raise MalformedLine with the place of the first cell that is too long."""
    for column in columns.values():
        if may_have_long_cells([column]):
            lengths = pc.utf8_length(column).combine_chunks()
            row = pc.index(pc.greater(lengths, get_limit(CELL)), value=True).as_py()
            if row >= 0:
                message, remedy = describe_long_cell()
                raise MalformedLine(message, where=locate(row), remedy=remedy)


def get_unpacked_limit(n_bytes: int) -> int:
    """Return how many bytes a compressed file of ``n_bytes`` may have when it is unpacked."""
    return max(FREE_BYTES, MAX_RATIO * n_bytes)


def make_size_error(where: str, limit: int) -> MalformedLine:
    """Return the error for a compressed file whose content is too large."""
    message = (
        f"unpacks to more than {limit:,} bytes, over {MAX_RATIO} times its size: it may be made "
        "to fill the memory"
    )
    return MalformedLine(
        message, where=where, remedy="if it is right, unpack it, and name that file"
    )
