"""The values of texts, by detector and text: append-only files of lines with a checksum.

Each writer appends to a file of its own, so that processes need no lock and a line that a killed
process left unfinished is the last of its file. All files of a detector are read; a damaged line
is skipped, and its text is evaluated again.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.errors import MissingFile
from recbias.core.input_files import open_input
from recbias.core.stage_context import warn
from recbias.runner.storage.store import VALUES, Store, report_unwritable

SUFFIX = ".values"
"""The extension of the files."""


@dataclass(frozen=True)
class TextValues:
    """The stored values of a detector.

    Args:
        folder: The folder of all detectors; it is created by the first values.
        run_id: A run that uses its own values only; blank for the others.
        detector: The digest of everything but the text that could change the values.
    """

    folder: Path
    run_id: str
    detector: str

    def find(self, digest: str) -> FloatArray | None:
        """Return the values of the text with a digest, None if there are none."""
        return self._values.get(digest)

    def append(self, digests: Sequence[str], values: FloatArray) -> None:
        """Store values of texts; they are on the disk when this returns.

        Raises:
            Unwritable: The folder is read-only or the disk is full.
        """
        lines = b"".join(map(_format_line, digests, values))
        with report_unwritable(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._file.open("ab") as stream:
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
        self._values.update(zip(digests, values, strict=True))

    @cached_property
    def _file(self) -> Path:
        return self.folder / f"{self._prefix}-{uuid.uuid4().hex[:12]}{SUFFIX}"

    @property
    def _prefix(self) -> str:
        return f"{self.detector}.{self.run_id}" if self.run_id else self.detector

    @cached_property
    def _values(self) -> dict[str, FloatArray]:
        values: dict[str, FloatArray] = {}
        n_damaged = 0
        for path in sorted(self.folder.glob(f"{self._prefix}-*{SUFFIX}")):
            with suppress(OSError):  # used now, which resets its age
                os.utime(path)
            for entry in _read_lines(path):
                if entry is None:
                    n_damaged += 1
                else:
                    values.setdefault(*entry)
        if n_damaged:
            warn(f"{n_damaged:,} damaged line(s) of the stored labels are computed again")
        return values


def find_values(store: Store, run_id: str = "") -> Callable[[str], TextValues]:
    """Return a function from the digest of a detector to its stored values.

    Args:
        store: The store whose folder holds them.
        run_id: A run that uses its own values only; blank for the others.
    """
    return partial(TextValues, store.folder / VALUES, run_id)


def _format_line(digest: str, values: FloatArray) -> bytes:
    body = json.dumps([digest, values.tolist()]).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _read_lines(path: Path) -> Iterator[tuple[str, FloatArray] | None]:
    """Yield the digest and values of each line; None for a damaged one, or an unreadable file."""
    try:
        with open_input(path) as stream:
            yield from map(_parse_line, stream)
    except MissingFile:
        yield None


def _parse_line(line: bytes) -> tuple[str, FloatArray] | None:
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    try:
        digest, values = json.loads(body)
        return str(digest), np.array(values, dtype=np.float64)
    except (ValueError, TypeError, RecursionError):
        return None
