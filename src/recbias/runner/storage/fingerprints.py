"""Digests of input files; a large file is read again only when it has changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from recbias.core.digests import compute_digest, digest_file
from recbias.core.errors import ChangedFile, MissingFile
from recbias.core.input_files import convert_read_errors, open_input
from recbias.runner.storage.records import seal_record, unseal_record
from recbias.runner.storage.store import Store

LARGE = 16 * 2**20
"""Bytes from which a digest is cached under the file's path, size and modification time."""


@dataclass(frozen=True)
class Fingerprints:
    """The digests of input files for one plan: each file is looked at once."""

    store: Store
    planned: dict[Path, str] = field(default_factory=dict, compare=False)

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file's bytes, as they were at the first call."""
        if path not in self.planned:
            self.planned[path] = self._compute(path)
        return self.planned[path]

    def of_files(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the SHA-256 of the bytes of each file."""
        return {path: self.of(path) for path in paths}

    def _compute(self, path: Path) -> str:
        with convert_read_errors(path):
            status = path.stat()
        if status.st_size < LARGE:
            return digest_file(path)
        state = _describe_state(path, status)
        cache = self.store.folder / "files" / f"{compute_digest(state)}.json"
        try:
            with open_input(cache) as stream:
                return str(unseal_record(stream.read().decode())["digest"])
        except (MissingFile, ValueError, KeyError, RecursionError):
            digest = digest_file(path)
        if _describe_state(path, path.stat()) == state:
            with suppress(OSError), self.store.temporary() as folder:
                new = folder / cache.name
                new.write_text(seal_record({"digest": digest}), encoding="utf-8")
                cache.parent.mkdir(parents=True, exist_ok=True)
                new.replace(cache)
        return digest


def validate_unchanged(files: Mapping[Path, str], store: Store) -> None:
    """Check that files still have the digests that they had when the run was planned.

    Raises:
        ChangedFile: A file was changed or removed.
    """
    current = Fingerprints(store)
    for path, planned in files.items():
        try:
            is_unchanged = current.of(path) == planned
        except MissingFile:
            is_unchanged = False
        if not is_unchanged:
            raise ChangedFile(f"{path} changed while the run was reading it")


def _describe_state(path: Path, status: os.stat_result) -> list[object]:
    return [str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ino]
