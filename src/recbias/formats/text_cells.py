"""Cells of text to numbers, and the first cell that is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.errors import MalformedLine


def parse_numbers(texts: Any, name: str, place: Callable[[int], str]) -> FloatArray:
    """Return Arrow text as ``float64``; white space around a number is left out.

    Args:
        texts: The cells.
        name: The column, as messages call it.
        place: Where a row (from 0) stands.

    Raises:
        MalformedLine: A cell is no number.
    """
    import pyarrow as pa
    from pyarrow import compute

    trimmed = compute.utf8_trim_whitespace(texts)
    try:
        return np.asarray(trimmed.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowInvalid as error:
        row, text = next(
            (row, text) for row, text in enumerate(trimmed.to_pylist()) if not _is_number(text)
        )
        found = f"the {name} {shorten(text)} is not a number"
        raise MalformedLine(found, where=place(row)) from error


def shorten(value: object, most: int = 60) -> str:
    """Return a value as a message shows it: its beginning, where it is long.

    >>> shorten("abc"), shorten("9" * 5000, 8)
    ("'abc'", "'9999...")
    """
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def _is_number(text: str) -> bool:
    import pyarrow as pa

    try:
        pa.scalar(text, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
