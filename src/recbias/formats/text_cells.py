"""Cells of text to numbers, and the first cell that is not a number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from recbias.core.arrays import FloatArray
from recbias.core.errors import MalformedLine

RECBOLE_COLUMN = re.compile(r"([^:]+):(?:token|float)(?:_seq)?")
"""A column in the header of a RecBole file: ``user_id:token``."""


def parse_numbers(texts: Any, name: str, locate: Callable[[int], str]) -> FloatArray:
    """Return Arrow text as ``float64``; white space around a number is ignored.

    Raises:
        MalformedLine: A cell of the column ``name`` is not a number; ``locate`` returns the place
            of a row, counted from 0.
    """
    trimmed = compute.utf8_trim_whitespace(texts)
    try:
        return np.asarray(trimmed.cast(pa.float64()), dtype=np.float64)
    except pa.ArrowInvalid as error:
        cells = enumerate(trimmed.to_pylist())
        row, text = next((row, text) for row, text in cells if not _is_arrow_number(text))
        message = f"the {name} {shorten(text)} is not a number"
        raise MalformedLine(message, where=locate(row)) from error


def shorten(value: object, max_length: int = 60) -> str:
    """Return the representation of a value for a message, truncated if it is long.

    >>> shorten("abc"), shorten("9" * 5000, 8)
    ("'abc'", "'9999...")
    """
    text = repr(value)
    return text if len(text) <= max_length else f"{text[: max_length - 3]}..."


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number.

    >>> is_number("-1e-3"), is_number("score")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_arrow_number(text: str) -> bool:
    try:
        pa.scalar(text, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
