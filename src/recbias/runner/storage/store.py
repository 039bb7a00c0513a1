"""Content-addressed results, written atomically.

A result is written to a temporary folder and renamed to its address: readers find a complete
result or none. The file ``stage.json`` beside it (``records``) has the size and SHA-256 of each
file; a result that does not match it is removed and computed again.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from recbias.core.digests import digest_file
from recbias.core.errors import MissingFile, Unwritable
from recbias.core.input_files import open_input
from recbias.core.machine.memory import is_shortage
from recbias.core.records import Stored
from recbias.core.stage_context import warn
from recbias.runner.boundary import attempt
from recbias.runner.storage.records import RECORD, render_record, unseal_and_parse
from recbias.runner.storage.serializers import FORMATS

SCRATCH = "scratch"
"""The folder of files that several stages share, such as tokenized texts."""

REPLIES = "replies"
"""The folder of the replies of language models, beside the store: they are never evicted."""

VALUES = "values"
"""The folder of the values of texts, by which detectors label items."""

TEMPORARY = "tmp"
"""The folder of what is being written."""

LEFTOVER_SECONDS = 24 * 3600
"""The age from which a temporary folder is one that a killed process has left."""


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
        """Create the folder, and remove what killed processes have left in it.

        Raises:
            Unwritable: It cannot be created.
        """
        with report_unwritable(self.folder.parent):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.sweep()

    def record(self, digest: str) -> Stored | None:
        """Return the record of a result, None if it is missing or damaged."""
        if not os.path.exists(f"{self.folder}/{digest[:2]}/{digest}"):  # noqa: PTH110  a path takes longer than the look at the disk
            return None
        try:
            with open_input(self.path(digest) / RECORD) as stream:
                return unseal_and_parse(stream.read(), digest)
        except (MissingFile, OSError):
            return None

    def is_damaged(self, digest: str) -> bool:
        """Return whether there is something at an address that is no complete result."""
        return os.path.lexists(self.path(digest)) and not self.has(digest)

    def has(self, digest: str) -> bool:
        """Return whether a complete result is stored: every file has its recorded size."""
        stored = self.record(digest)
        if stored is None:
            return False
        folder = self.path(digest)
        try:
            return all(
                (folder / name).stat().st_size == size for name, (size, _) in stored.files.items()
            )
        except OSError:
            return False

    def look_up(self, digests: Iterable[str]) -> None:
        """Ask for several results at once; a folder of this machine is asked when it is needed."""

    def look_again(self, digest: str) -> None:
        """Do not count on it that a result was absent; a folder of this machine is always read."""

    def touch(self, digest: str) -> None:
        """Mark a result as used now, which resets its age."""
        with suppress(OSError):
            os.utime(self.path(digest) / RECORD)

    def load(self, digest: str) -> Any:
        """Return a result; None, after a warning, if it is damaged, which removes it, or gone.

        An error that says that memory ran out is raised: the result may be intact.
        """
        stored, folder = self.record(digest), self.path(digest)
        if stored is None:
            return None
        try:
            is_intact = all(
                digest_file(folder / name) == checksum
                for name, (_, checksum) in stored.files.items()
            )
        except MissingFile:
            is_intact = False
        remove, value = partial(self.remove, digest), None
        if is_intact:
            load = partial(FORMATS[stored.kind].load, folder)
            value, _ = attempt(load, on_lasting_failure=remove, passes_on=is_shortage)
        else:
            remove()
        if value is None:
            warn(describe_damage(stored.stage))
        return value

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
            record = dataclasses.replace(stored, files=files)
            (folder / RECORD).write_text(render_record(record, digest), encoding="utf-8")
            target = self.path(digest)
            if os.path.lexists(target) and (replace or not self.has(digest)):
                self.remove(digest)
            if not target.parent.is_dir():
                self.remove_path(target.parent)  # a file or a broken link
                target.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.rename(target)
            except OSError as error:  # a result that another process stored there stays
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise

    def remove(self, digest: str) -> None:
        """Remove a result: it is renamed first, so that nobody reads an incomplete one."""
        self.remove_path(self.path(digest))

    def remove_path(self, path: Path) -> None:
        """Remove a file, a link or a folder by renaming it first; it may be absent."""
        with self.temporary() as folder, suppress(FileNotFoundError, NotADirectoryError):
            path.rename(folder / "old")

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """Yield a new folder of this process, named so that no other has it; it is removed."""
        folder = self.folder / TEMPORARY / f"{os.getpid()}-{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove the temporary folders that killed processes have left a day ago or longer."""
        for folder in (self.folder / TEMPORARY).glob("*"):
            with suppress(FileNotFoundError):
                if folder.stat().st_mtime < time.time() - LEFTOVER_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def __iter__(self) -> Iterator[tuple[str, Stored]]:
        """Yield the address and the record of every result."""
        for path in sorted(self.folder.glob(f"??/*/{RECORD}")):
            stored = self.record(path.parent.name)
            if stored is not None:
                yield path.parent.name, stored


def describe_damage(title: str) -> str:
    """Return the warning about a damaged result of a stage."""
    return f"the stored result of {title!r} was damaged and is computed again"


@contextmanager
def report_unwritable(folder: Path) -> Iterator[None]:
    """Turn an error of the file system into an error with a remedy.

    Raises:
        Unwritable: The folder is read-only, not a folder, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        if is_shortage(error):
            raise
        message, remedy = f"it cannot be written: {error.strerror}", "give another --out"
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            message, remedy = "the disk is full", "free some space, or give another --out"
        elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            message, remedy = "it cannot be written", "give a folder that you may write: --out DIR"
        elif error.errno in {errno.ENOTDIR, errno.EEXIST}:
            message = "it is not a folder"
        elif error.errno in {errno.EMFILE, errno.ENFILE}:
            remedy = "allow more open files (ulimit -n), or use fewer --workers"
        elif error.errno == errno.EFBIG:
            remedy = "allow larger files (ulimit -f), or give an --out on another disk"
        names = [name for name in (error.filename, error.filename2) if name]
        lasting = [name for name in names if not Path(name).is_relative_to(folder / TEMPORARY)]
        where = str([*lasting, *names, folder][0])  # of a renaming, not the temporary file
        raise Unwritable(message, where=where, remedy=remedy) from error
