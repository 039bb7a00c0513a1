"""What a file holds, as a digest; large files are read once for each time they change.

Addresses are made of these digests while a run is planned, and the files are read later: what a
stage made of its files is stored only where they still hold what was planned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recbias.core.digests import compute_digest, digest_file
from recbias.core.errors import ChangedFile, MissingFile
from recbias.core.input_files import convert_read_errors
from recbias.runner.storage.store import Store

LARGE = 16 * 2**20
"""Bytes from which a digest is remembered under the file's path, size and time of change."""


@dataclass(frozen=True)
class Fingerprints:
    """Digests of input files as one plan sees them: each file is looked at once.

    Args:
        store: Where those of large files are remembered.
        planned: The digests that were asked for so far.
    """

    store: Store
    planned: dict[Path, str] = field(default_factory=dict, compare=False)

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file's bytes, as they were when it was first asked for."""
        if path not in self.planned:
            self.planned[path] = self._measure(path)
        return self.planned[path]

    def of_files(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the SHA-256 of the bytes of each file."""
        return {path: self.of(path) for path in paths}

    def _measure(self, path: Path) -> str:
        with convert_read_errors(path):
            facts = path.stat()
        if facts.st_size < LARGE:
            return digest_file(path)
        state = _state(path, facts)
        memory = self.store.folder / "files" / f"{compute_digest(state)}.json"
        try:
            return str(json.loads(memory.read_text(encoding="utf-8"))["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            found = digest_file(path)
        if _state(path, path.stat()) == state:
            self._remember(memory, found)
        return found

    def _remember(self, memory: Path, found: str) -> None:
        try:
            with self.store.temporary() as folder:
                written = folder / memory.name
                written.write_text(json.dumps({"sha256": found}), encoding="utf-8")
                memory.parent.mkdir(parents=True, exist_ok=True)
                written.replace(memory)
        except OSError:
            return


def refuse_changed(files: Mapping[Path, str], store: Store) -> None:
    """Refuse files that no longer hold what they held when the run was planned.

    Args:
        files: The digest of each as planned.
        store: Where the digests of large files are remembered.

    Raises:
        ChangedFile: One was changed or removed.
    """
    current = Fingerprints(store)
    for path, planned in files.items():
        try:
            is_same = current.of(path) == planned
        except MissingFile:
            is_same = False
        if not is_same:
            raise ChangedFile(f"{path} changed while the run was reading it")


def _state(path: Path, facts: os.stat_result) -> list[object]:
    return [str(path.resolve()), facts.st_size, facts.st_mtime_ns, facts.st_ino]
