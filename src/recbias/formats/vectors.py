"""Arrays of numbers, and vectors of words, of which only the needed words are kept in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from recbias.core.arrays import AnyArray
from recbias.core.errors import MalformedLine, WrongType
from recbias.core.input_files import open_input
from recbias.core.machine.shortage import raise_shortage
from recbias.core.packages import require_packages
from recbias.core.stage_context import warn
from recbias.formats.archives import ARCHIVE_ERRORS, open_zip, refuse_size
from recbias.formats.text_files import BOM, get_suffix, open_binary

_TEXT_SUFFIXES = (".txt", ".vec")
"""Text files with one word and its numbers per line; also with ``.gz``."""

_ARRAY_SUFFIX = ".npz"
"""An archive with the arrays ``words`` and ``vectors``."""

_TENSOR_SUFFIX = ".safetensors"
"""A file with the tensor ``vectors``, and the words in its metadata."""

_BLOCK_BYTES = 2**24
"""Bytes of an array that are read at once."""

_AS_ARRAYS = "write it by numpy.savez(path, words=np.array(words), vectors=vectors)"
_AS_TENSORS = (
    "write it by safetensors.numpy.save_file({'vectors': vectors}, path, {'words': "
    "'\\n'.join(words)}), as float16, float32 or float64"
)
_FLOATS = frozenset({"F16", "F32", "F64"})


_ArrayHeader: TypeAlias = tuple[tuple[int, ...], bool, "np.dtype[Any]"]
"""The shape of an array, whether it is stored column by column, and the type of its values."""

_HEADER_READERS: Mapping[tuple[int, int], Callable[..., _ArrayHeader]] = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}

_HEADER_ERRORS = (
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
            shape, is_fortran, kind = _read_header(file)
        except _HEADER_ERRORS as error:
            message = "not a .npy file of numbers"
            raise MalformedLine(message, where=str(path), remedy=remedy) from error
        if len(shape) != n_axes or kind.kind not in "fiu":
            message = f"an array {kind}{list(shape)}, not {layout}"
            raise MalformedLine(message, where=str(path), remedy=remedy)
        n_bytes = os.fstat(file.fileno()).st_size - file.tell()
        if (expected := _count_bytes(shape, kind)) != n_bytes:
            message = f"its header promises {expected:,} bytes of numbers, and it has {n_bytes:,}"
            raise MalformedLine(message, where=str(path), remedy=remedy)
        values = np.frombuffer(file.read(), dtype=kind)
    return values.reshape(shape, order="F" if is_fortran else "C").copy()


def _read_header(stream: IO[bytes]) -> _ArrayHeader:
    """Return the header of an array; one of ``_HEADER_ERRORS`` is raised if it is malformed."""
    shape, is_fortran, kind = _HEADER_READERS[npy_format.read_magic(stream)](stream)
    if any(size < 0 for size in shape):
        message = "an array of a negative size"
        raise ValueError(message)
    return shape, is_fortran, kind


def _count_bytes(shape: tuple[int, ...], kind: np.dtype[Any]) -> int:
    """Return the number of bytes of an array.

    >>> _count_bytes((10**12, 2), np.dtype(np.float64))
    16000000000000
    """
    n_bytes = kind.itemsize
    for size in shape:
        n_bytes *= size
    return n_bytes


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors of words.

    Args:
        rows: The row of each word.
        vectors: ``float32 (n, d)``.
    """

    rows: Mapping[str, int]
    vectors: npt.NDArray[np.float32]


def check_vector_file(path: Path) -> None:
    """Refuse a file whose name does not say how its vectors are stored; raises WrongType."""
    if path.suffix.lower() not in _READERS and get_suffix(path) not in _TEXT_SUFFIXES:
        remedy = f"name it {', '.join((*_TEXT_SUFFIXES, '.txt.gz', *_READERS))}"
        raise WrongType(f"{path.name} is no file of word vectors", remedy=remedy)


def list_vector_packages(path: Path) -> tuple[str, ...]:
    """Return the packages that read a file of vectors, besides those that are always there.

    >>> list_vector_packages(Path("glove.txt")), list_vector_packages(Path("glove.safetensors"))
    ((), ('safetensors',))
    """
    return ("safetensors",) if path.suffix.lower() == _TENSOR_SUFFIX else ()


def read_word_vectors(path: Path, words: Collection[str]) -> WordVectors:
    """Return the vectors of those words that a file has, each as it is first in the file.

    A text file (``.txt``, ``.vec``, also with ``.gz``) is that of GloVe, or of word2vec and
    fastText, which have a first line with the number of words and the size. It is read line by
    line; only lines of ``words`` are parsed, and entries of several words are skipped. An
    ``.npz`` archive has the array ``words`` of text and the array ``vectors``, ``(n, d)``, which
    is read in blocks; so is the tensor ``vectors`` of a ``.safetensors`` file, whose metadata
    ``words`` has one word per line.

    Args:
        path: The file.
        words: The words that are needed.

    Raises:
        MissingFile: The file does not exist or cannot be read.
        WrongType: It has another suffix.
        MalformedLine: A line is not a word and its numbers, or the arrays are of other types.
        MissingExtra: The package safetensors is not installed, and the file needs it.
    """
    check_vector_file(path)
    entries = _READERS.get(path.suffix.lower(), _read_text)(path, frozenset(words))
    vectors: dict[str, AnyArray] = {}
    n_repeats = 0
    for word, vector in entries:
        n_repeats += word in vectors
        vectors.setdefault(word, vector)
    if n_repeats:
        warn(f"{path.name}: {n_repeats:,} entries repeat a word; the first one counts")
    table = np.stack([*vectors.values()]) if vectors else np.empty((0, 0), dtype=np.float32)
    return WordVectors({word: row for row, word in enumerate(vectors)}, table)


def _read_text(path: Path, words: frozenset[str]) -> Iterator[tuple[str, AnyArray]]:
    needed = {word.encode("utf-8", "surrogatepass"): word for word in words}
    size = 0
    vectors: dict[str, AnyArray] = {}
    with open_binary(path) as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.removeprefix(BOM) if number == 1 else raw
            if not size:
                size = _read_size(line)
                if _is_header(line):
                    continue
                if size < 1:
                    message = "not a word and its numbers, separated by spaces"
                    remedy = "give vectors as text (GloVe, word2vec, fastText), or as .npz"
                    raise MalformedLine(message, where=f"{path}:{number}", remedy=remedy)
            name, _, rest = line.rstrip().partition(b" ")
            cells = rest.split() if name in needed else None
            if cells is not None and len(cells) <= size:  # an entry of several words has more
                word = needed[name]
                if word not in vectors:  # of entries that repeat a word the first one counts
                    vectors[word] = _parse(cells, size, f"{path}:{number}")
                yield word, vectors[word]
    if not size:
        raise MalformedLine("the file is empty", where=str(path), remedy="give another file")


def _is_header(line: bytes) -> bool:
    cells = line.split()
    return len(cells) == 2 and all(cell.isdigit() for cell in cells)


def _read_size(line: bytes) -> int:
    """Return the size of the vectors by the first line of a file, which may be a header."""
    return int(line.split()[1]) if _is_header(line) else len(line.split()) - 1


def _parse(cells: list[bytes], size: int, location: str) -> AnyArray:
    try:
        vector = np.array([float(cell) for cell in cells], dtype=np.float32)
    except ValueError as error:
        raise MalformedLine(f"a number is malformed: {error}", where=location) from error
    if vector.size != size:
        raise MalformedLine(f"{vector.size:,} numbers; the vectors have {size:,}", where=location)
    if not np.isfinite(vector).all():
        raise MalformedLine("a number is NaN, infinite or too large", where=location)
    return vector


def _read_archive(path: Path, words: frozenset[str]) -> Iterator[tuple[str, AnyArray]]:
    with _open_array(path, "words") as (stream, shape, _, kind):
        if len(shape) != 1 or kind.kind != "U":
            message = f"words is an array {kind}{list(shape)}, not text [n]"
            raise MalformedLine(message, where=str(path), remedy=_AS_ARRAYS)
        names = [*_read_rows(stream, shape, kind)]
    with _open_array(path, "vectors") as (stream, shape, is_fortran, kind):
        if len(shape) != 2 or kind.kind != "f" or is_fortran or shape[0] != len(names):
            order = ", column by column" if is_fortran else ""
            message = (
                f"vectors is an array {kind}{list(shape)}{order}, not numbers [{len(names):,}, d]"
            )
            raise MalformedLine(message, where=str(path), remedy=_AS_ARRAYS)
        yield from _select(path, names, _read_rows(stream, shape, kind), words)


def _read_tensors(path: Path, words: frozenset[str]) -> Iterator[tuple[str, AnyArray]]:
    require_packages(path.name, "safetensors")
    from safetensors import SafetensorError, safe_open

    with open_input(path):  # the file exists and can be read
        try:
            with safe_open(path, framework="numpy") as file:
                text = (file.metadata() or {}).get("words", "")
                names = text.split("\n") if text else []
                tensor = file.get_slice("vectors")
                shape, kind = tensor.get_shape(), tensor.get_dtype()
                if len(shape) != 2 or kind not in _FLOATS or shape[0] != len(names):
                    message = f"vectors is a tensor {kind}{shape}, not numbers [{len(names):,}, d]"
                    raise MalformedLine(message, where=str(path), remedy=_AS_TENSORS)
                n_block = max(1, _BLOCK_BYTES // max(8 * shape[1], 1))
                starts = range(0, shape[0], n_block)
                blocks = (tensor[row : min(row + n_block, shape[0])] for row in starts)
                yield from _select(path, names, chain.from_iterable(blocks), words)
        except SafetensorError as error:
            message = f"the tensor 'vectors' cannot be read: {error}"
            raise MalformedLine(message, where=str(path), remedy=_AS_TENSORS) from error


def _select(
    path: Path, names: Iterable[object], vectors: Iterable[AnyArray], words: frozenset[str]
) -> Iterator[tuple[str, AnyArray]]:
    """Yield the vectors of some of the words."""
    for name, vector in zip(names, vectors, strict=True):
        if (word := str(name)) in words:
            with np.errstate(over="ignore"):
                row = np.array(vector, dtype=np.float32)
            if not np.isfinite(row).all():
                message = f"the vector of {word!r} has NaN, infinity or a number too large"
                raise MalformedLine(message, where=str(path), remedy="correct its vectors")
            yield word, row


@contextmanager
def _open_array(
    path: Path, name: str
) -> Iterator[tuple[IO[bytes], tuple[int, ...], bool, np.dtype[Any]]]:
    """Open an array of an archive behind its header; no pickle is read."""
    with open_input(path) as raw:
        try:
            with open_zip(raw) as archive, archive.open(f"{name}.npy") as stream:
                refuse_size(path, sum(entry.file_size for entry in archive.infolist()))
                yield stream, *_read_header(stream)
        except (*_HEADER_ERRORS, *ARCHIVE_ERRORS) as error:
            raise_shortage(error)
            message = f"the array {name!r} cannot be read: {str(error)[:200]}"
            raise MalformedLine(message, where=str(path), remedy=_AS_ARRAYS) from error


def _read_rows(
    stream: IO[bytes], shape: tuple[int, ...], kind: np.dtype[Any]
) -> Iterator[AnyArray]:
    """Yield the rows of an array, read in blocks."""
    width = _count_bytes(shape[1:], kind)
    n_block = max(1, _BLOCK_BYTES // max(width, 1))
    for start in range(0, shape[0], n_block):
        n = min(n_block, shape[0] - start)
        data = stream.read(n * width)
        if len(data) != n * width:
            message = "the data ends early"
            raise EOFError(message)
        yield from np.frombuffer(data, dtype=kind).reshape(n, *shape[1:])


_READERS = {_ARRAY_SUFFIX: _read_archive, _TENSOR_SUFFIX: _read_tensors}
"""How the files are read that are no text, by suffix."""
