"""Files of vectors and of their identifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, Ids
from recbias.core.errors import BrokenContract, MalformedLine, MissingFile
from recbias.core.input_files import has_file
from recbias.formats.text_files import read_text
from recbias.formats.vectors import read_numbers


def read_vectors(path: Path) -> AnyArray:
    """Return the array of a ``.npy`` file, ``(n, d)``.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: It is not a ``.npy`` file with a matrix of real numbers.
        BrokenContract: A vector contains NaN or infinity.
    """
    _require(path)
    vectors = read_numbers(path, 2, "numbers (n, d)", "write it with numpy.save(path, vectors)")
    refuse_rows(~np.isfinite(vectors).all(axis=1), path, "contain NaN or infinity")
    return vectors


def read_ids(path: Path) -> Ids:
    """Return the identifiers of a text file, one per line, exactly as written.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: An identifier is empty or repeated, or the file is not UTF-8.
    """
    _require(path)
    text = read_text(path).decode().removesuffix("\n")
    ids = [line.removesuffix("\r") for line in text.split("\n")] if text not in {"", "\r"} else []
    first_lines: dict[str, int] = {}
    for line, identifier in enumerate(ids, start=1):
        if not identifier:
            raise MalformedLine("an empty id", where=f"{path}:{line}")
        if first_lines.setdefault(identifier, line) != line:
            problem = f"id {identifier!r} already occurs on line {first_lines[identifier]}"
            raise MalformedLine(problem, where=f"{path}:{line}")
    return np.array(ids, dtype=object)


def refuse_rows(is_wrong: Any, path: Path, problem: str, remedy: str = "") -> None:
    """Raise BrokenContract if vectors are wrong, with the first of their rows."""
    if (rows := np.flatnonzero(is_wrong)).size:
        message = f"{rows.size:,} vectors {problem}, the first in row {rows[0]} (from 0)"
        raise BrokenContract(message, where=str(path), remedy=remedy)


def _require(path: Path) -> None:
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
