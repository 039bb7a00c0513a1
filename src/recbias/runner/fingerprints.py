"""What a file holds, as a digest; large files are read once for each time they change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from recbias.core.digests import digest, file_digest
from recbias.core.input_files import reading
from recbias.runner.store import Store

LARGE = 16 * 2**20
"""Bytes from which a digest is remembered under the file's path, size and time of change."""


@dataclass(frozen=True)
class Fingerprints:
    """Digests of input files.

    Args:
        store: Where those of large files are remembered.
    """

    store: Store

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file's bytes."""
        with reading(path):
            facts = path.stat()
        if facts.st_size < LARGE:
            return file_digest(path)
        state = [str(path.resolve()), facts.st_size, facts.st_mtime_ns, facts.st_ino]
        memory = self.store.folder / "files" / f"{digest(state)}.json"
        try:
            return str(json.loads(memory.read_text(encoding="utf-8"))["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            found = file_digest(path)
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
