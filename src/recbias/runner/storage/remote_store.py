"""A store whose results are also at a URL: for machines without a shared disk.

Results are read from and written to a folder of this machine. What it lacks is copied from the
URL, and what is computed is copied to it, ``stage.json`` last: without it a result is incomplete.

An answer may take a second, so none is asked for twice: what a process has read of a record is
kept, also that there is none. Before a stage is computed, and before its result is copied, the URL
is asked again, since another machine may have stored it meanwhile.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from recbias.core.errors import ConfigError, Contradiction, Unwritable
from recbias.core.records import Stored
from recbias.core.stage_context import collect_warnings, warn
from recbias.runner.storage.records import RECORD, unseal_and_parse
from recbias.runner.storage.remote_files import RemoteFiles, ask_together, open_url
from recbias.runner.storage.store import HOST, Store

IN_MEMORY = frozenset({"memory", "mock"})
"""The schemes by which fsspec and pyarrow keep files in the memory of the process."""

SLOW_SECONDS = 3.0
"""The time for a small file, written, read and removed, from which a store counts as slow."""


class _Found(NamedTuple):
    """A record at the URL: as it was read, and its file."""

    record: Stored
    content: bytes


@dataclass(frozen=True)
class RemoteStore(Store):
    """A folder of results, and a copy of them at a URL.

    Checkpoints, replies of language models and values of texts are in the folder only.

    Args:
        url: Where the copy is, such as ``s3://bucket/recbias`` or ``file:///mnt/share/recbias``:
            a URL that pyarrow, or fsspec if it is installed, can open.
        seen: The records that this process has read at the URL, None for those that it lacked.
    """

    url: str = ""
    seen: dict[str, _Found | None] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what another process needs: it asks for itself."""
        return RemoteStore, (self.folder, self.url)

    @property
    def remote(self) -> RemoteFiles:
        """The files at the URL."""
        return RemoteFiles(self.url, self.folder)

    def prepare(self) -> None:
        """Create the folder; check that the URL can be written and read; warn if it is slow.

        Raises:
            Unwritable: It cannot be written or read.
        """
        super().prepare()
        name, content = f"tmp/{HOST}-{uuid.uuid4().hex}", uuid.uuid4().bytes
        begin = time.perf_counter()
        self.remote.write(name, content)
        is_same = self.remote.read(name) == content
        with suppress(Unwritable):
            self.remote.delete(name)
        if not is_same:
            message = "it returned other bytes than were written"
            raise Unwritable(message, where=self.url, remedy="give another --store")
        seconds = time.perf_counter() - begin
        if seconds > SLOW_SECONDS:
            message = f"{seconds:.1f} s to write, read and remove a small file"
            warn(f"the store {self.url} is slow: {message}")

    def record(self, digest: str) -> Stored | None:
        """Return the record of a result of the folder, else of the URL; None if both lack it."""
        return super().record(digest) or self._find(digest)

    def has(self, digest: str) -> bool:
        """Return whether a result is complete in the folder, or recorded at the URL."""
        return super().has(digest) or self._find(digest) is not None

    def look_up(self, digests: Iterable[str]) -> None:
        """Read the records at several addresses at the same time."""
        ask_together(self._find, digests)

    def look_again(self, digest: str) -> None:
        """Ask the URL again for a result that it lacked."""
        if self.seen.get(digest) is None:
            self.seen.pop(digest, None)

    def touch(self, digest: str) -> None:
        """Mark a result as used now, and copy it to the URL if that lacks it."""
        super().touch(digest)
        if self._find(digest) is None:
            self._upload(digest)

    def load(self, digest: str) -> Any:
        """Return a result; what the folder lacks or has damaged is copied from the URL first."""
        value = super().load(digest) if super().has(digest) else None
        if value is None and self._download(digest):
            value = super().load(digest)
        return value

    def save(self, digest: str, value: Any, stored: Stored, *, replace: bool = False) -> None:
        """Write a result to the folder and to the URL; unless ``replace``, stored results stay."""
        super().save(digest, value, stored, replace=replace)
        self.seen.pop(digest, None)
        if not replace and self._find(digest) is not None:
            return
        self._upload(digest)

    def _upload(self, digest: str) -> None:
        """Copy a result of the folder to the URL, its record last."""
        record, folder = super().record(digest), self.path(digest)
        if record is None:  # another process has removed it
            return
        for names in (record.files, (RECORD,)):
            self.remote.upload({self._name(digest, name): folder / name for name in names})
        self.seen.pop(digest, None)

    def _find(self, digest: str) -> Stored | None:
        """Return the record at the URL, as this process has read it before."""
        if digest not in self.seen:
            self._read_record(digest)
        found = self.seen[digest]
        return None if found is None else found.record

    def _read_record(self, digest: str) -> _Found | None:
        content = self.remote.read(self._name(digest, RECORD))
        record = None if content is None else unseal_and_parse(content, digest)
        self.seen[digest] = found = _Found(record, content) if record and content else None
        return found

    def _download(self, digest: str) -> bool:
        """Copy a result from the URL to the folder; return whether it is complete and intact."""
        if (known := self.seen.get(digest)) is not None:
            with collect_warnings():  # another machine may have replaced it since
                is_copied = self._copy(digest, known)
            if is_copied:
                return True
        found = self._read_record(digest)
        if found is None or self._copy(digest, found):
            return found is not None
        self.remote.delete(self._name(digest, RECORD))  # so that it is stored again
        self.seen.pop(digest, None)
        return False

    def _copy(self, digest: str, found: _Found) -> bool:
        """Copy the files of a record; return whether they are those that it describes."""
        with self.temporary() as folder:
            copy = Store(folder)
            path = copy.path(digest)
            path.mkdir(parents=True)
            self.remote.download(
                {self._name(digest, name): path / name for name in found.record.files}
            )
            (path / RECORD).write_bytes(found.content)
            if copy.load(digest) is None:
                return False
            if self.path(digest).exists():
                self.remove(digest)
            self.path(digest).parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another process copied it at the same time
                path.rename(self.path(digest))
        return super().has(digest)

    @staticmethod
    def _name(digest: str, name: str) -> str:
        return f"{digest[:2]}/{digest}/{name}"


def open_store(folder: Path, url: str | None) -> Store:
    """Return the store in a folder, with its copy at a URL unless that is None.

    Raises:
        ConfigError: It is no URL, or one that shares nothing between processes.
        Contradiction: The URL holds a key or password.
        UnknownName: Nothing that is installed can open it.
    """
    if url is None:
        return Store(folder)
    url = url.rstrip("/")
    parts = urlsplit(url)
    if not parts.scheme or "://" not in url or not (parts.netloc or parts.path):
        remedy = "give a URL such as s3://bucket/recbias or file:///mnt/share/recbias"
        raise ConfigError("is not a URL", where="--store", remedy=remedy)
    if parts.scheme == "file" and parts.netloc not in {"", "localhost"}:
        message = f"a file on the host {parts.netloc!r} cannot be opened"
        remedy = f"give three slashes: file:///{parts.netloc}{parts.path}"
        raise ConfigError(message, where="--store", remedy=remedy)
    if parts.scheme in IN_MEMORY:
        message = f"{parts.scheme}:// is the memory of one process, where no other finds results"
        remedy = (
            "give a URL such as s3://bucket/recbias or file:///mnt/share/recbias, or no --store"
        )
        raise ConfigError(message, where="--store", remedy=remedy)
    if "@" in parts.netloc:
        message = "the URL holds a key or password, which would be shown"
        remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, instead"
        raise Contradiction(message, where="--store", remedy=remedy)
    open_url(url)
    return RemoteStore(folder, url)
