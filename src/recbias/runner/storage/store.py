"""Content-addressed results, written atomically.

A result is written to a temporary folder and renamed to its address: readers find a complete
result or none. The file ``stage.json`` beside it has the size and SHA-256 of each file, and a
checksum of its own; a result that does not match it is removed and computed again.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recbias.core.digests import compute_digest, digest_file
from recbias.core.errors import MissingFile, Unwritable
from recbias.core.records import Stored
from recbias.core.stage_context import warn
from recbias.runner.operating_system import is_running
from recbias.runner.storage.serializers import FORMATS

RECORD = "stage.json"
"""The file of a result with its record."""

CHECKSUM = "sha256"
"""The key of ``stage.json`` with the checksum of the other keys."""

SCRATCH = "scratch"
"""The folder of files that several stages share, such as tokenized texts."""

REPLIES = "replies"
"""The folder of the replies of language models, beside the store: they are never evicted."""

VALUES = "values"
"""The folder of the values of texts, by which detectors label items."""

HOST = re.sub(r"[^A-Za-z0-9.]", "_", platform.node()) or "host"
"""The machine, in the name of temporary folders: several machines may share a disk."""


@dataclass(frozen=True)
class Store:
    """A folder of results by address: ``results/store``."""

    folder: Path

    @property
    def reply_folder(self) -> Path:
        """The folder of the replies of language models."""
        return self.folder.parent / REPLIES

    def path(self, digest: str) -> Path:
        """Return the folder of the result at an address."""
        return self.folder / digest[:2] / digest

    def prepare(self) -> None:
        """Create the folder, and remove what processes of this machine have left in it.

        Raises:
            Unwritable: It cannot be created.
        """
        with report_unwritable(self.folder.parent):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.sweep()

    def record(self, digest: str) -> Stored | None:
        """Return the record of a result, None if it is missing or damaged."""
        try:
            return self.parse(digest, (self.path(digest) / RECORD).read_bytes())
        except OSError:
            return None

    @staticmethod
    def parse(digest: str, content: bytes) -> Stored | None:  # noqa: ARG004
        """Return the record in the content of ``stage.json``, None if it is damaged."""
        try:
            record = unseal_record(content.decode("utf-8"))
            if record["kind"] not in FORMATS:
                return None
            sizes = record["files"].items()
            files = {name: (int(size), str(checksum)) for name, (size, checksum) in sizes}
            return Stored(**record | {"files": files, "warnings": tuple(record["warnings"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def is_damaged(self, digest: str) -> bool:
        """Return whether an address has a result that is incomplete."""
        return self.path(digest).exists() and not self.has(digest)

    def has(self, digest: str) -> bool:
        """Return whether a complete result is stored: every file has its recorded size."""
        stored, folder = self.record(digest), self.path(digest)
        try:
            return stored is not None and all(
                (folder / name).stat().st_size == size for name, (size, _) in stored.files.items()
            )
        except OSError:
            return False

    def touch(self, digest: str) -> None:
        """Mark a result as used now, which resets its age."""
        with suppress(OSError):
            os.utime(self.path(digest) / RECORD)

    def load(self, digest: str) -> Any:
        """Return a result; None, after a warning and its removal, if its bytes have changed."""
        stored, folder = self.record(digest), self.path(digest)
        if stored is None:
            return None
        for name, (_, checksum) in stored.files.items():
            try:
                is_intact = digest_file(folder / name) == checksum
            except MissingFile:
                is_intact = False
            if not is_intact:
                warn(f"the stored result of {stored.stage!r} was damaged and is computed again")
                self.remove(digest)
                return None
        return FORMATS[stored.kind].load(folder)

    def save(self, digest: str, value: Any, stored: Stored, *, replace: bool = False) -> None:
        """Write a result and its record; unless ``replace``, a stored result stays.

        Raises:
            Unwritable: The folder is read-only or the disk is full.
        """
        with report_unwritable(self.folder), self.temporary() as folder:
            FORMATS[stored.kind].save(value, folder)
            files = {
                path.name: (path.stat().st_size, digest_file(path))
                for path in sorted(folder.iterdir())
            }
            record = {**asdict(stored), "files": files}
            (folder / RECORD).write_text(seal_record(record), encoding="utf-8")
            target = self.path(digest)
            if target.exists() and (replace or not self.has(digest)):
                self.remove(digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.rename(target)
            except OSError as error:  # a result that another process stored there stays
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise

    def remove(self, digest: str) -> None:
        """Remove a result: it is renamed first, so that nobody reads an incomplete one."""
        with self.temporary() as folder, suppress(FileNotFoundError):
            self.path(digest).rename(folder / "old")

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """Yield a new folder that belongs to this process; it is removed afterwards."""
        folder = self.folder / "tmp" / f"{HOST}-{os.getpid()}-{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the temporary folders of processes of this machine that have ended."""
        for folder in (self.folder / "tmp").glob(f"{HOST}-*-*"):
            pid = folder.name.removeprefix(f"{HOST}-").partition("-")[0]
            if pid.isdigit() and not is_running(int(pid)):
                shutil.rmtree(folder, ignore_errors=True)

    def __iter__(self) -> Iterator[tuple[str, Stored]]:
        """Yield the address and the record of every result."""
        for path in sorted(self.folder.glob(f"??/*/{RECORD}")):
            stored = self.record(path.parent.name)
            if stored is not None:
                yield path.parent.name, stored


@contextmanager
def report_unwritable(folder: Path) -> Iterator[None]:
    """Turn an error of the file system into an error with a remedy.

    Raises:
        Unwritable: The folder is read-only, not a folder, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        message, remedy = f"it cannot be written: {error.strerror}", "give another --out"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            message, remedy = "the disk is full", "free some space, or give another --out"
        elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            message, remedy = "it cannot be written", "give a folder that you may write: --out DIR"
        elif error.errno in {errno.ENOTDIR, errno.EEXIST}:
            message = "it is not a folder"
        raise Unwritable(message, where=str(error.filename or folder), remedy=remedy) from error


def seal_record(record: dict[str, Any]) -> str:
    """Return the text of a record with its checksum."""
    plain = json.loads(json.dumps(record, default=str))
    return json.dumps({**plain, CHECKSUM: compute_digest(plain)}, ensure_ascii=False)


def unseal_record(text: str) -> dict[str, Any]:
    """Return the record in a text.

    Raises:
        ValueError: It is no record, or does not match its checksum.
    """
    record = json.loads(text)
    if not isinstance(record, dict) or record.pop(CHECKSUM, "") != compute_digest(record):
        raise ValueError(f"{RECORD} does not match its checksum")
    return record
