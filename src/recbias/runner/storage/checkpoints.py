"""Checkpoints of a running stage: a training that was killed resumes from the last one.

A checkpoint is one file under ``partial``, named for the address of the stage: a SHA-256, then the
``.npz`` that it is the checksum of. It is renamed from a temporary file, so that readers find a
complete one; a file that does not match its checksum is ignored.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import MissingFile, Unwritable
from recbias.core.input_files import open_input
from recbias.core.machine.operating_system import measure_peak_memory_mb
from recbias.core.stage_context import warn
from recbias.runner.stage import Stage
from recbias.runner.storage.fingerprints import WatchedFiles
from recbias.runner.storage.store import Store, report_unwritable

FOLDER = "partial"
"""The folder of checkpoints in a store."""

SPENT = "runner.spent"
"""The array with the seconds and the peak memory up to a checkpoint."""

CHECKSUM_BYTES = hashlib.sha256().digest_size
"""The size of the checksum at the start of a file."""


@dataclass
class StageCheckpoints:
    """The checkpoints of one stage, and the time and memory that earlier runs spent on it.

    A stage may train several models: each training loads its last checkpoint when it starts, and
    has a file of its own. If one cannot be written, a warning says so and the training continues.

    Args:
        earlier_seconds: The seconds that earlier runs spent up to the checkpoint that was resumed.
        peak: The peak memory then, in MB.
        inputs: The input files of the stage, watched from now on.
    """

    store: Store
    stage: Stage
    earlier_seconds: float = 0.0
    peak: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    _training: int = 0
    _is_unwritable: bool = False
    inputs: WatchedFiles = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = WatchedFiles(self.stage.files, self.store)

    @property
    def seconds(self) -> float:
        """The seconds that the stage took, in this run and before."""
        return self.earlier_seconds + time.perf_counter() - self.began

    @property
    def peak_memory_mb(self) -> float:
        """The peak memory of the stage, in this run and before."""
        return max(self.peak, measure_peak_memory_mb())

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last checkpoint of the stage's next training, None if it has none.

        Raises:
            Unwritable: One is damaged and cannot be removed.
        """
        self._training += 1
        if not os.path.lexists(self._path):
            return None
        arrays = read_arrays(self._path)
        if arrays is None or SPENT not in arrays:
            self._remove(self._path)
            warn(f"the checkpoint of {self.stage.title!r} was damaged; the stage starts again")
            return None
        seconds, peak = arrays.pop(SPENT)
        self.earlier_seconds = max(self.earlier_seconds, float(seconds))
        self.peak = max(self.peak, float(peak))
        return arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        """Replace the last checkpoint of the current training.

        Raises:
            ChangedFile: An input file of the stage has changed since the run was planned.
        """
        if self._is_unwritable:
            return
        self.inputs.require_unchanged()
        spent = np.array([self.seconds, self.peak_memory_mb])
        try:
            with report_unwritable(self.store.folder), self.store.temporary() as folder:
                path = folder / FOLDER
                write_arrays({**arrays, SPENT: spent}, path)
                self._path.parent.mkdir(exist_ok=True)
                path.replace(self._path)
        except Unwritable as error:
            self._is_unwritable = True
            warn(f"no more checkpoints of {self.stage.title!r} are written: {error}")

    def discard(self) -> None:
        """Remove every checkpoint of the stage.

        Raises:
            Unwritable: One cannot be removed.
        """
        for path in list_checkpoints(self.store, self.stage.digest):
            self._remove(path)

    def _remove(self, path: Path) -> None:
        with report_unwritable(self.store.folder):
            self.store.remove_path(path)

    @property
    def _path(self) -> Path:
        return self.store.folder / FOLDER / f"{self.stage.digest}-{self._training}"


def list_checkpoints(store: Store, digest: str = "") -> list[Path]:
    """Return the checkpoint files of one address, or of all."""
    return sorted((store.folder / FOLDER).glob(f"{digest}*"))


def write_arrays(arrays: Mapping[str, AnyArray], path: Path) -> None:
    """Write named arrays, none of Python objects, behind their checksum."""
    with path.open("w+b") as file:
        file.write(bytes(CHECKSUM_BYTES))
        np.savez(file, allow_pickle=False, **arrays)
        file.seek(CHECKSUM_BYTES)
        checksum = hashlib.file_digest(file, "sha256").digest()
        file.seek(0)
        file.write(checksum)


def read_arrays(path: Path) -> dict[str, AnyArray] | None:
    """Return the arrays of a file, None if it cannot be read or does not match the checksum.

    Also None if what matches is no file of arrays.
    """
    try:
        with open_input(path) as file:
            checksum = file.read(CHECKSUM_BYTES)
            if hashlib.file_digest(file, "sha256").digest() != checksum:
                return None
            file.seek(CHECKSUM_BYTES)
            with np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except (MissingFile, ValueError, EOFError, BadZipFile):
        return None
