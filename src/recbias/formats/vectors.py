"""Arrays of numbers, and vectors of words, of which only the needed words are kept in memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from recbias.core.context import warn
from recbias.core.dataset import AnyArray
from recbias.core.errors import MalformedLine, WrongType
from recbias.core.files import open_input
from recbias.core.packages import require_packages
from recbias.formats.archives import refuse_large_zip
from recbias.formats.text_files import BOM, get_suffix, open_binary

_TEXT_SUFFIXES = (".txt", ".vec")
"""Text files with one word and its numbers per line; also with ``.gz``."""

_ARRAY_SUFFIX = ".npz"
"""An archive with the arrays ``words`` and ``vectors``."""

_TENSOR_SUFFIX = ".safetensors"
"""A file with the tensor ``vectors``, and the words in its metadata."""

_BLOCK_BYTES = 2**24
"""Bytes of a tensor that are read at once."""

_AS_ARRAYS = "write it by numpy.savez(path, words=np.array(words), vectors=vectors)"
_AS_TENSORS = (
    "write it by safetensors.numpy.save_file({'vectors': vectors}, path, {'words': "
    "'\\n'.join(words)}), as float16, float32 or float64"
)
_FLOATS = frozenset({"F16", "F32", "F64"})


_ARRAY_ERRORS = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError),
    *(SyntaxError, TokenError, TypeError, ValueError, struct.error, zlib.error, BadZipFile),
)
"""What numpy raises for a damaged array, whose header it reads as an expression of Python."""


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
        except _ARRAY_ERRORS as error:
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
    if path.suffix.lower() not in _READERS and get_suffix(path) not in _TEXT_SUFFIXES:
        remedy = f"name it {', '.join((*_TEXT_SUFFIXES, '.txt.gz', *_READERS))}"
        raise WrongType(f"{path.name} is no file of word vectors", remedy=remedy)


def list_vector_packages(path: Path) -> tuple[str, ...]:
    """Return the packages that read a file of vectors, besides those that are always there.

    >>> list_vector_packages(Path("glove.txt")), list_vector_packages(Path("glove.safetensors"))
    ((), ('safetensors',))
    """
    return ("safetensors",) if path.suffix.lower() == _TENSOR_SUFFIX else ()


def read_word_vectors(path: Path, words: Collection[str]) -> _WordVectors:
    """Return the vectors of those words that a file has, each as it is first in the file.

    A text file (``.txt``, ``.vec``, also with ``.gz``) is that of GloVe, or of word2vec and
    fastText, which have a first line with the number of words and the size. It is read line by
    line; only lines of ``words`` are parsed, and entries of several words are skipped. An
    ``.npz`` archive has the array ``words`` of text and the array ``vectors``, ``(n, d)``. A
    ``.safetensors`` file has the tensor ``vectors``, which is read in blocks, and its metadata
    ``words`` one word per line.

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
    return _WordVectors({word: row for row, word in enumerate(vectors)}, table)


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
    arrays: list[AnyArray] = []
    with open_input(path) as raw:
        try:
            refuse_large_zip(raw, path)
            with np.load(path, allow_pickle=False) as content:
                arrays = [content[name] for name in ("words", "vectors")]
        except _ARRAY_ERRORS as error:
            message = f"its arrays 'words' and 'vectors' cannot be read: {str(error)[:200]}"
            raise MalformedLine(message, where=str(path), remedy=_AS_ARRAYS) from error
    names, vectors = arrays
    if names.ndim != 1 or names.dtype.kind != "U":
        message = f"words is an array {names.dtype}{list(names.shape)}, not text [n]"
        raise MalformedLine(message, where=str(path), remedy=_AS_ARRAYS)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) != len(names):
        shape = f"{vectors.dtype}{list(vectors.shape)}"
        message = f"vectors is an array {shape}, not numbers [{len(names):,}, d]"
        raise MalformedLine(message, where=str(path), remedy=_AS_ARRAYS)
    yield from _select(path, names, vectors, words)


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


_READERS = {_ARRAY_SUFFIX: _read_archive, _TENSOR_SUFFIX: _read_tensors}
"""How the files are read that are no text, by suffix."""
