"""Arrays of numbers, and vectors of words, of which only the needed words are kept in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tokenize import TokenError

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from recbias.core.context import warn
from recbias.core.dataset import AnyArray
from recbias.core.errors import MalformedLine, WrongType
from recbias.core.files import open_input
from recbias.formats.text_files import BOM, get_suffix, open_binary

_DAMAGED = (
    *(ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError, SyntaxError),
    *(TokenError, TypeError, ValueError),
)
"""What numpy raises for a damaged array, whose header it reads as an expression of Python."""

_SUFFIXES = (".txt", ".vec")
"""Text files with one word and its numbers per line; also with ``.gz``."""


def read_numbers(path: Path, n_axes: int, layout: str, remedy: str) -> AnyArray:
    """Return the array of real numbers in a ``.npy`` file; no pickle is read.

    Args:
        path: The file.
        n_axes: The number of its axes.
        layout: What the array should be, for messages.
        remedy: How to write it.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        MalformedLine: It is not a ``.npy`` file of such an array, or has less data than
            its header says.
    """
    with open_input(path):
        try:
            values = npy_format.open_memmap(path, mode="r")
        except _DAMAGED as error:
            message = f"not a .npy file of numbers: {str(error)[:200]}"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error
        if values.ndim != n_axes or values.dtype.kind not in "fiu":
            message = f"an array {values.dtype}{list(values.shape)}, not {layout}"
            raise MalformedLine(message, where=str(path), remedy=remedy)
        return np.array(values)


@dataclass(frozen=True, eq=False)
class _WordVectors:
    """The vectors of words."""

    rows: Mapping[str, int]
    vectors: npt.NDArray[np.float32]


def check_vector_file(path: Path) -> None:
    """Refuse a file whose name does not say how its vectors are stored; raises WrongType."""
    if get_suffix(path) not in _SUFFIXES:
        remedy = f"name it {', '.join(_SUFFIXES)} or .txt.gz"
        raise WrongType(f"{path.name} is no file of word vectors", remedy=remedy)


def read_word_vectors(path: Path, words: Collection[str]) -> _WordVectors:
    """Return the vectors of those words that a file has, each as it is first in the file.

    The file is that of GloVe, or of word2vec and fastText, which have a first line with the number
    of words and the size. It is read line by line; only lines of ``words`` are parsed, and entries
    of several words are skipped.

    Args:
        path: The file.
        words: The words that are needed.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        WrongType: It has another suffix.
        MalformedLine: A line is not a word and its numbers.
    """
    check_vector_file(path)
    needed = {word.encode("utf-8", "surrogatepass"): word for word in words}
    vectors: dict[str, AnyArray] = {}
    n_repeats = 0
    with open_binary(path) as stream:
        first = stream.readline().removeprefix(BOM)
        size, is_header = _read_size(first, path)
        for number, line in enumerate(chain([first], stream), start=1):
            name, _, rest = line.rstrip().partition(b" ")
            cells = rest.split() if name in needed else []
            if not cells or len(cells) > size:  # an entry of several words has more
                continue
            if (word := needed[name]) in vectors:
                n_repeats += 1
            elif number > 1 or not is_header:
                vectors[word] = _parse(cells, size, f"{path}:{number}")
    if n_repeats:
        warn(f"{path.name}: {n_repeats:,} entries repeat a word; the first one counts")
    table = np.stack([*vectors.values()]) if vectors else np.empty((0, 0), dtype=np.float32)
    return _WordVectors({word: row for row, word in enumerate(vectors)}, table)


def _read_size(first: bytes, path: Path) -> tuple[int, bool]:
    """Return the size of the vectors by the first line of a file, and whether it is a header."""
    cells = first.split()
    if not first:
        raise MalformedLine("the file is empty", where=str(path), remedy="give another file")
    if len(cells) < 2:
        message = "not a word and its numbers, separated by spaces"
        remedy = "give vectors as text: GloVe, word2vec, fastText"
        raise MalformedLine(message, where=f"{path}:1", remedy=remedy)
    is_header = len(cells) == 2 and all(cell.isdigit() for cell in cells)
    return int(cells[1]) if is_header else len(cells) - 1, is_header


def _parse(cells: list[bytes], size: int, where: str) -> AnyArray:
    try:
        vector = np.array([float(cell) for cell in cells], dtype=np.float32)
    except ValueError:
        vector = np.empty(0, dtype=np.float32)
    if vector.size != size or not np.isfinite(vector).all():
        message, remedy = f"not {size:,} finite numbers", "correct the line, or give another file"
        raise MalformedLine(message, where=where, remedy=remedy)
    return vector
