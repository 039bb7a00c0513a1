"""The numbers of rows and of different values of a text file, estimated from samples of lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from recbias.formats.limited.unpacked_files import UnpackedStream
from recbias.formats.text_files import is_gzip, open_binary

N_CHUNKS, CHUNK_SIZE = 64, 2**16
"""The number of places of a file at which lines are read, and the bytes that are read there."""


class RowSample(NamedTuple):
    """Lines of a file.

    Args:
        n_rows: The estimated number of lines of the file.
        chunks: The lines that were read, without their line ends; those of a chunk are adjacent.
    """

    n_rows: int
    chunks: list[list[bytes]]


def sample_rows(path: Path, *, skip: int = 0) -> RowSample:
    """Read lines at even distances, or the first ones of a compressed file.

    Args:
        path: The file.
        skip: Bytes at the start, a header line, that are left out.
    """
    size = path.stat().st_size - skip
    if is_gzip(path) or size <= N_CHUNKS * CHUNK_SIZE:
        return _read_start(path, skip)
    chunks = []
    with path.open("rb") as file:
        for number in range(N_CHUNKS):
            file.seek(skip + number * (size - CHUNK_SIZE) // (N_CHUNKS - 1))
            chunks.append(file.read(CHUNK_SIZE).splitlines()[1:-1])
    n_lines = sum(map(len, chunks))
    n_bytes = sum(len(line) + 1 for chunk in chunks for line in chunk)
    return RowSample(round(size * n_lines / max(n_bytes, 1)), chunks)


def _read_start(path: Path, skip: int) -> RowSample:
    with open_binary(path) as stream:
        stream.read(skip)
        data = stream.read(N_CHUNKS * CHUNK_SIZE)
        is_whole = not stream.read(1)
        packed = stream.raw.packed if isinstance(stream.raw, UnpackedStream) else stream
        share = packed.tell() / max(path.stat().st_size, 1)
    lines = data.splitlines()
    return RowSample(len(lines) if is_whole else round(len(lines) / max(share, 1e-9)), [lines])


def estimate_distinct(chunks: Sequence[Sequence[bytes]], n_rows: int) -> int:
    """Return the estimated number of different values of a column.

    If equal values are adjacent, as in a file that is sorted by user, it is the number of changes
    of the value for each row times the rows; else, by Chao's estimator, at least

        D + f₁ (f₁ - 1) / (2 (f₂ + 1))

    with D the different values of the sample and f₁, f₂ the numbers of those that occur once and
    twice in it.

    Args:
        chunks: The cells of sampled rows; those of a chunk are adjacent.
        n_rows: The number of rows of the file.

    Source:
        Chao, "Nonparametric estimation of the number of classes in a population", Scandinavian
        Journal of Statistics 11(4), 1984.

    >>> estimate_distinct([[b"1", b"1", b"2"], [b"7", b"7", b"8"]], 600)
    300
    >>> estimate_distinct([[b"1", b"2", b"1", b"2"]], 600)
    2
    """
    counts = Counter(cell for chunk in chunks for cell in chunk)
    n_sampled = counts.total()
    if n_sampled >= n_rows:
        return len(counts)
    n_changes = sum(a != b for chunk in chunks for a, b in pairwise(chunk))
    n_runs = n_changes + len(chunks)
    if n_runs < 0.8 * n_sampled and len(counts) > 0.8 * n_runs:
        return round(n_rows * n_changes / max(n_sampled - len(chunks), 1))
    frequencies = Counter(counts.values())
    once, twice = frequencies[1], frequencies[2]
    return min(round(len(counts) + once * (once - 1) / (2 * (twice + 1))), n_rows)
