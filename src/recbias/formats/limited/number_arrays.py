"""Arrays of numbers as ``numpy.save`` writes them; no pickle is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.lib import format as npy_format

from recbias.core.arrays import AnyArray
from recbias.core.errors import MalformedLine
from recbias.core.input_files import open_input

ArrayHeader: TypeAlias = tuple[tuple[int, ...], bool, "np.dtype[Any]"]
"""The shape of an array, whether it is stored column by column, and the type of its values."""

_READERS: Mapping[tuple[int, int], Callable[..., ArrayHeader]] = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}

HEADER_ERRORS = (
    *(ValueError, TypeError, KeyError, EOFError, OverflowError, RecursionError, MemoryError),
    *(SyntaxError, TokenError),
)
"""What numpy raises for a damaged header, which it reads as an expression of Python."""


def read_numbers(path: Path, n_axes: int, layout: str, remedy: str) -> AnyArray:
    """Return the array of real numbers in a ``.npy`` file.

    Args:
        path: The file.
        n_axes: The number of its axes.
        layout: What the array should be, for messages.
        remedy: How to write it.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: It is not a ``.npy`` file of such an array, or has more or less data than
            its header says.
    """
    with open_input(path) as file:
        try:
            shape, is_fortran, kind = read_header(file)
        except HEADER_ERRORS as error:
            message = "not a .npy file of numbers"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error
        if len(shape) != n_axes or kind.kind not in "fiu":
            message = f"an array {kind}{list(shape)}, not {layout}"
            raise MalformedLine(message, where=str(path), remedy=remedy)
        n_bytes = os.fstat(file.fileno()).st_size - file.tell()
        if (expected := count_bytes(shape, kind)) != n_bytes:
            message = f"its header promises {expected:,} bytes of numbers, and it has {n_bytes:,}"
            raise MalformedLine(message, where=str(path), remedy=remedy)
        values = np.frombuffer(file.read(), dtype=kind)
    return values.reshape(shape, order="F" if is_fortran else "C").copy()


def read_header(stream: IO[bytes]) -> ArrayHeader:
    """Return the header of an array; one of ``HEADER_ERRORS`` is raised if it is malformed."""
    shape, is_fortran, kind = _READERS[npy_format.read_magic(stream)](stream)
    if any(size < 0 for size in shape):
        message = "an array of a negative size"
        raise ValueError(message)
    return shape, is_fortran, kind


def count_bytes(shape: tuple[int, ...], kind: np.dtype[Any]) -> int:
    """Return the number of bytes of an array.

    >>> count_bytes((10**12, 2), np.dtype(np.float64))
    16000000000000
    """
    n_bytes = kind.itemsize
    for size in shape:
        n_bytes *= size
    return n_bytes
