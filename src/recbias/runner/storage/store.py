"""Content-addressed results, written whole or not at all.

A result is written to a folder of its own under ``tmp`` and renamed to its address: a reader finds
the whole of it or nothing, whatever is killed and whoever else writes. Beside the files lies
``stage.json`` with the size and SHA-256 of each, and with a checksum of its own; a result that
does not match it, or whose ``stage.json`` cannot be read (a disk that lost power, a truncated
copy), is taken out and made again.
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
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recbias.core.digests import compute_digest as digest_of
from recbias.core.digests import digest_file
from recbias.core.errors import MissingFile, Unwritable
from recbias.core.records import Stored
from recbias.core.stage_context import warn
from recbias.runner.storage.serializers import FORMATS

RECORD = "stage.json"

SEAL = "sha256"
"""The key of ``stage.json`` with the checksum of all the others."""

SCRATCH = "scratch"
"""The folder of files that several stages share, such as texts as tokens."""

HOST = re.sub(r"[^A-Za-z0-9.]", "_", platform.node()) or "host"
"""The machine, in the name of temporary folders: a shared disk has processes of several."""


@dataclass(frozen=True)
class Store:
    """A folder of results by address.

    Args:
        folder: ``results/store``.
    """

    folder: Path

    def path(self, digest: str) -> Path:
        """Return where the result of an address lies, or would lie."""
        return self.folder / digest[:2] / digest

    def record(self, digest: str) -> Stored | None:
        """Return what lies beside a result, None where there is none that can be trusted."""
        try:
            text = (self.path(digest) / RECORD).read_text(encoding="utf-8")
            return _stored(unsealed(text))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def is_damaged(self, digest: str) -> bool:
        """Return whether something lies at an address that is no whole result."""
        return self.path(digest).exists() and not self.has(digest)

    def has(self, digest: str) -> bool:
        """Return whether a whole result is there: every file with the size that was written."""
        stored = self.record(digest)
        if stored is None:
            return False
        folder = self.path(digest)
        return all(_size(folder / name) == size for name, (size, _) in stored.files.items())

    def touch(self, digest: str) -> None:
        """Say that a result was used: its age starts anew."""
        try:
            os.utime(self.path(digest) / RECORD)
        except OSError:
            return

    def load(self, digest: str) -> Any:
        """Return a result; None, set aside with a warning, where its bytes have changed."""
        stored = self.record(digest)
        folder = self.path(digest)
        if stored is None:
            return None
        for name, (_, sha) in stored.files.items():
            try:
                intact = digest_file(folder / name) == sha
            except MissingFile:
                intact = False
            if not intact:
                warn(f"the stored result of {stored.stage!r} was damaged and is made again")
                self.remove(digest)
                return None
        return FORMATS[stored.kind].load(folder)

    def save(self, digest: str, value: Any, stored: Stored, *, replace: bool = False) -> None:
        """Write a result and what lies beside it; one that is there already is kept.

        Raises:
            Unwritable: The folder is read-only or the disk is full.
        """
        with writing(self.folder), self.temporary() as folder:
            FORMATS[stored.kind].save(value, folder)
            files = {path.name: _measured(path) for path in sorted(folder.iterdir())}
            whole = {**asdict(stored), "files": files}
            (folder / RECORD).write_text(sealed(whole), encoding="utf-8")
            target = self.path(digest)
            if target.exists() and (replace or not self.has(digest)):
                self.remove(digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            move(folder, target)

    def remove(self, digest: str) -> None:
        """Take a result out of the store: renamed first, so that nobody reads half of it."""
        with self.temporary() as folder:
            try:
                self.path(digest).rename(folder / "old")
            except FileNotFoundError:
                return

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """Yield a new folder that only this process knows; what is left of it is removed."""
        folder = self.folder / "tmp" / f"{HOST}-{os.getpid()}-{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the temporary folders of processes of this machine that are gone."""
        for folder in (self.folder / "tmp").glob(f"{HOST}-*-*"):
            pid = folder.name.removeprefix(f"{HOST}-").partition("-")[0]
            if pid.isdigit() and not _alive(int(pid)):
                shutil.rmtree(folder, ignore_errors=True)

    def __iter__(self) -> Iterator[tuple[str, Stored]]:
        """Yield the address and the record of every result."""
        for path in sorted(self.folder.glob(f"??/*/{RECORD}")):
            stored = self.record(path.parent.name)
            if stored is not None:
                yield path.parent.name, stored


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn a refusal of the file system into one line that says what to do.

    Raises:
        Unwritable: The folder is read-only, not a folder, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            found, remedy = "the disk is full", "free some space, or give another --out"
        elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            found, remedy = "it cannot be written", "give a folder that you may write: --out DIR"
        elif error.errno in {errno.ENOTDIR, errno.EEXIST}:
            found, remedy = "it is not a folder", "give another --out"
        else:
            found, remedy = f"it cannot be written: {error.strerror}", "give another --out"
        raise Unwritable(found, where=str(error.filename or folder), remedy=remedy) from error


def move(folder: Path, target: Path) -> None:
    """Rename a folder to its place; where another process was first, its result stands."""
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise


def sealed(record: dict[str, Any]) -> str:
    """Return the text of a record with its checksum."""
    plain = json.loads(json.dumps(record, default=str))
    return json.dumps({**plain, SEAL: digest_of(plain)}, ensure_ascii=False)


def unsealed(text: str) -> dict[str, Any]:
    """Return the record of a text.

    Raises:
        ValueError: It is no record, or does not match its checksum.
    """
    record = json.loads(text)
    if not isinstance(record, dict) or record.pop(SEAL, "") != digest_of(record):
        raise ValueError(f"{RECORD} does not match its checksum")
    return record


def _stored(record: dict[str, Any]) -> Stored:
    if record["kind"] not in FORMATS:
        raise ValueError(f"{RECORD} has an unknown kind of stage")
    files = {name: (int(size), str(sha)) for name, (size, sha) in record.pop("files").items()}
    warnings = tuple(record.pop("warnings"))
    return Stored(files=files, warnings=warnings, **record)


def _measured(path: Path) -> tuple[int, str]:
    return path.stat().st_size, digest_file(path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
