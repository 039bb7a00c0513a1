"""How far a stage is, kept in the store: a training that was killed goes on from there.

A checkpoint is one file under ``partial``, named for the address of the stage: the SHA-256 of what
follows, then an ``.npz``. It is written elsewhere and renamed, so that a reader finds a whole one,
the last or the one before, whatever is killed and whoever else works on the same stage. One that
does not match its checksum (a disk that lost power, a truncated copy) counts as none.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import Unwritable
from recbias.core.stage_context import warn
from recbias.runner.environment import peak_memory_mb
from recbias.runner.stage import Stage
from recbias.runner.storage.fingerprints import refuse_changed
from recbias.runner.storage.store import Store, writing

FOLDER = "partial"
"""Where checkpoints lie in a store."""

SPENT = "runner.spent"
"""The array with the seconds and the peak memory that a checkpoint took."""

SEAL = hashlib.sha256().digest_size
"""Bytes of the checksum at the head of a file."""


@dataclass
class StageKeeper:
    """Keeps the checkpoints of one stage, and counts what earlier runs spent on it.

    A stage may train several times, one after another: each training asks for its last checkpoint
    when it starts, and has a file of its own. A checkpoint that cannot be written is a warning,
    and the last one of the stage in this run: the training goes on without.

    Args:
        store: Where they are kept.
        stage: The stage.
        earlier: Seconds that earlier runs had spent until what was taken up.
        peak: The peak memory then, in MB.
        began: When this run began with the stage.
    """

    store: Store
    stage: Stage
    earlier: float = 0.0
    peak: float = 0.0
    began: float = field(default_factory=time.perf_counter)
    _training: int = 0
    _refused: bool = False

    @property
    def seconds(self) -> float:
        """Seconds that the stage took, with those that were spent before this run."""
        return self.earlier + time.perf_counter() - self.began

    @property
    def peak_memory_mb(self) -> float:
        """The peak memory of the stage so far, also before this run."""
        return max(self.peak, peak_memory_mb())

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last checkpoint of the stage's next training, None where it has none."""
        self._training += 1
        try:
            arrays = read(self._path)
        except FileNotFoundError:
            return None
        if arrays is None:
            warn(f"the checkpoint of {self.stage.title!r} was damaged, so it starts anew")
            return None
        seconds, peak = arrays.pop(SPENT)
        self.earlier = max(self.earlier, float(seconds))
        self.peak = max(self.peak, float(peak))
        return arrays

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        """Write a checkpoint in place of the last one; whole or not at all.

        Raises:
            ChangedFile: An input file of the stage was changed since the run was planned.
        """
        if self._refused:
            return
        refuse_changed(self.stage.files, self.store)
        spent = np.array([self.seconds, self.peak_memory_mb])
        try:
            with writing(self.store.folder), self.store.temporary() as folder:
                written = folder / FOLDER
                write({**arrays, SPENT: spent}, written)
                self._path.parent.mkdir(exist_ok=True)
                written.replace(self._path)
        except Unwritable as error:
            self._refused = True
            warn(f"{self.stage.title!r} is kept no further while it is trained: {error}")

    def discard(self) -> None:
        """Remove every checkpoint of the stage."""
        for path in checkpoints(self.store, self.stage.digest):
            path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        return self.store.folder / FOLDER / f"{self.stage.digest}-{self._training}"


def checkpoints(store: Store, digest: str = "") -> list[Path]:
    """Return the checkpoint files of one address, or of all."""
    return sorted((store.folder / FOLDER).glob(f"{digest}*"))


def write(arrays: Mapping[str, AnyArray], path: Path) -> None:
    """Write named arrays, none of them of objects, with a checksum before them."""
    with path.open("w+b") as file:
        file.write(bytes(SEAL))
        np.savez(file, allow_pickle=False, **arrays)
        file.seek(SEAL)
        seal = hashlib.file_digest(file, "sha256").digest()
        file.seek(0)
        file.write(seal)


def read(path: Path) -> dict[str, AnyArray] | None:
    """Return the arrays of a file; None where they do not match its checksum.

    Raises:
        FileNotFoundError: There is no such file.
    """
    with path.open("rb") as file:
        seal = file.read(SEAL)
        if hashlib.file_digest(file, "sha256").digest() != seal:
            return None
        file.seek(SEAL)
        with np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
