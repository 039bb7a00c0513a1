"""Digests of input files; a large file is read again only when it has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recbias.core.digests import compute_digest, digest_file
from recbias.core.errors import ChangedFile, MissingFile
from recbias.core.input_files import convert_read_errors, open_input, read_version
from recbias.runner.storage.records import seal_record, unseal_record
from recbias.runner.storage.store import Store

LARGE = 16 * 2**20
"""Bytes from which a digest is cached under the file's path and version."""

RECENT_SECONDS = 2.0
"""A digest is not cached so soon after a change: another one could have the same time."""


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
        state = [str(path.resolve()), *read_version(path), status.st_ctime_ns]
        cache = self.store.folder / "files" / f"{compute_digest(state)}.json"
        try:
            with open_input(cache) as stream:
                return str(unseal_record(stream.read().decode())["digest"])
        except (MissingFile, ValueError, KeyError):
            digest = digest_file(path)
        is_recent = time.time() - status.st_ctime < RECENT_SECONDS
        if not is_recent and read_version(path) == tuple(state[1:-1]):
            with suppress(OSError), self.store.temporary() as folder:
                new = folder / cache.name
                new.write_text(seal_record({"digest": digest}), encoding="utf-8")
                cache.parent.mkdir(parents=True, exist_ok=True)
                new.replace(cache)
        return digest


@dataclass(eq=False)
class WatchedFiles:
    """Input files of a stage, watched from the moment that this object is made.

    Args:
        files: Their digests when the run was planned.
        store: The store of the run.
    """

    files: Mapping[Path, str]
    store: Store
    versions: Mapping[Path, tuple[int, ...]] = field(init=False, repr=False)
    _are_as_planned: bool = False

    def __post_init__(self) -> None:
        self.versions = {path: read_version(path) for path in self.files}

    def call(self, work: Callable[..., Any], *inputs: Any) -> Any:
        """Call a function that reads the files; return its result if they did not change.

        Raises:
            ChangedFile: A file was changed, replaced or removed.
        """
        value = work(*inputs)
        self.require_unchanged()
        return value

    def require_unchanged(self) -> None:
        """Check that the files are those of the plan, and were not written since they are watched.

        Raises:
            ChangedFile: A file was changed, replaced or removed.
        """
        current = Fingerprints(self.store)
        for path, planned in self.files.items():
            version = read_version(path)
            is_same = version != () and version == self.versions[path]
            if not is_same or not (self._are_as_planned or current.of(path) == planned):
                raise ChangedFile(f"{path} changed while the run was reading it")
        self._are_as_planned = True
