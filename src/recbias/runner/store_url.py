"""A store whose results are also at a URL: for machines without a shared disk.

Results are read from and written to a folder of this machine. What it lacks is copied from the
URL, and what is computed is copied to it, ``stage.json`` last: without it a result is incomplete.
pyarrow opens the URL, or fsspec if it is installed.

An answer may take a second, so several files are asked for at the same time, and what a process
has read of a record is kept, also that there is none. Before a stage is computed, and before its
result is copied, the URL is asked again, since another machine may have stored it meanwhile.
"""

from __future__ import annotations

import errno
import io
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.parse import urlsplit

from recbias.core.context import Stored, collect_warnings
from recbias.core.errors import ConfigError, Contradiction, UnknownName, Unwritable
from recbias.runner.store import RECORD, Store, parse_record, render_record

_MAX_REQUESTS = 16
"""The number of requests that wait for an answer at the same time."""

_CHUNK = 2**24
"""Bytes of a file that are asked for at once: a request each."""


@dataclass(frozen=True)
class RemoteStore(Store):
    """A folder of results, and a copy of them at a URL.

    Checkpoints, replies of language models and values of texts are in the folder only.

    Args:
        url: Where the copy is, such as ``s3://bucket/recbias`` or ``file:///mnt/share/recbias``.
        seen: The records that this process has read at the URL, None for those that it lacked.
    """

    is_remote: ClassVar[bool] = True
    url: str = ""
    seen: dict[str, Stored | None] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what another process needs: it asks for itself."""
        return RemoteStore, (self.folder, self.url)

    def prepare(self) -> None:
        """Create the folder, and check that the URL can be written and read.

        Raises:
            Unwritable: It cannot be written or read.
        """
        super().prepare()
        name = f"tmp/{uuid.uuid4().hex}"
        self._write(name, io.BytesIO(b"recbias"))
        self._read(name, io.BytesIO())
        with suppress(Unwritable):
            self._delete(name)

    def record(self, digest: str) -> Stored | None:
        """Return the record of a result of the folder, else of the URL; None if both lack it."""
        return super().record(digest) or self._find(digest)

    def has(self, digest: str) -> bool:
        """Return whether a result is complete in the folder, or recorded at the URL."""
        return super().has(digest) or self._find(digest) is not None

    def look_up(self, digests: Iterable[str]) -> None:
        """Read the records at several addresses at the same time."""
        _do_together(self._find, digests)

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
        if value is None and self.seen.get(digest) is not None:
            with collect_warnings():  # another machine may have replaced it since
                value = super().load(digest) if self._download(digest) else None
        if value is None:
            self.seen.pop(digest, None)
            value = super().load(digest) if self._download(digest) else None
            if value is None and self.seen.pop(digest, None) is not None:
                self._delete(f"{_locate(digest)}/{RECORD}")  # so that it is stored again
        return value

    def save(self, digest: str, value: Any, stored: Stored, *, replace: bool = False) -> None:
        """Write a result to the folder and to the URL; unless ``replace``, stored results stay."""
        super().save(digest, value, stored, replace=replace)
        self.seen.pop(digest, None)
        if replace or self._find(digest) is None:
            self._upload(digest)

    def _find(self, digest: str) -> Stored | None:
        """Return the record at the URL, as this process has read it before."""
        if digest not in self.seen:
            content = io.BytesIO()
            self._read(f"{_locate(digest)}/{RECORD}", content)
            self.seen[digest] = parse_record(content.getvalue(), digest)
        return self.seen[digest]

    def _upload(self, digest: str) -> None:
        """Copy a result of the folder to the URL, its record last."""
        record, folder = super().record(digest), self.path(digest)
        if record is None:  # another process has removed it
            return

        def upload(name: str) -> None:
            with (folder / name).open("rb") as source:
                self._write(f"{_locate(digest)}/{name}", source)

        _do_together(upload, record.files)
        upload(RECORD)
        self.seen.pop(digest, None)

    def _download(self, digest: str) -> bool:
        record = self._find(digest)
        if record is None:
            return False
        with self.temporary() as folder:

            def download(name: str) -> None:
                with (folder / name).open("wb") as target:
                    self._read(f"{_locate(digest)}/{name}", target)

            _do_together(download, record.files)
            (folder / RECORD).write_text(render_record(record, digest), encoding="utf-8")
            self.remove(digest)
            self.path(digest).parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another process copied it at the same time
                folder.rename(self.path(digest))
        return True

    def _read(self, name: str, target: IO[bytes]) -> None:
        """Copy a file of the URL; nothing if there is none."""
        with (
            self._report("read") as (files, prefix),
            suppress(FileNotFoundError),
            files.open_input_file(f"{prefix}/{name}") as source,
        ):
            shutil.copyfileobj(source, target, _CHUNK)

    def _write(self, name: str, source: IO[bytes]) -> None:
        with self._report("written") as (files, prefix):
            path = f"{prefix}/{name}"
            try:
                stream = files.open_output_stream(path)
            except FileNotFoundError:  # a file system with real folders
                files.create_dir(path.rpartition("/")[0], recursive=True)
                stream = files.open_output_stream(path)
            with stream:
                shutil.copyfileobj(source, stream, _CHUNK)

    def _delete(self, name: str) -> None:
        with self._report("written") as (files, prefix), suppress(FileNotFoundError):
            files.delete_file(f"{prefix}/{name}")

    @contextmanager
    def _report(self, done: str) -> Iterator[tuple[Any, str]]:
        """Yield the file system and the path in it; raise what fails there as Unwritable."""
        import pyarrow as pa

        try:
            yield open_url(self.url)
        except (OSError, pa.ArrowException) as error:
            reason = next(iter(str(error).strip().splitlines()), repr(error))
            is_local = self.url.startswith(("file:", "local:"))
            advice = "name another folder" if is_local else "check its address, keys and network"
            if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
                advice = "free some space there"
            remedy = f"{advice}; {self.folder} keeps the results"
            message = f"it cannot be {done}: {reason}"
            raise Unwritable(message, where=self.url, remedy=remedy) from error


def _locate(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


def _do_together(do: Callable[[str], object], names: Iterable[str]) -> None:
    """Call a function for each name; ``_MAX_REQUESTS`` calls wait at the same time."""
    with ThreadPoolExecutor(_MAX_REQUESTS) as threads:
        list(threads.map(do, names))


@cache
def open_url(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        UnknownName: Nothing that is installed can open it.
        Unwritable: The region of the bucket is not found: there is no such bucket, or no network.
    """
    import pyarrow as pa
    from pyarrow import fs

    # small files are then written by one request in place of three
    at_once = "&?"["?" not in url] + "allow_delayed_open=true" if url.startswith("s3:") else ""
    try:
        files, path = fs.FileSystem.from_uri(url + at_once)
    except OSError as error:
        remedy = "check its address, keys and network, or set AWS_ENDPOINT_URL or AWS_REGION"
        message = f"it cannot be opened: {str(error).strip().splitlines()[0]}"
        raise Unwritable(message, where=url, remedy=remedy) from error
    except (pa.ArrowException, ValueError) as error:
        try:
            from fsspec.core import url_to_fs

            of_fsspec, path = url_to_fs(url)
        except (ImportError, ValueError):
            remedy = "give s3://, gs:// or file:///, or install fsspec with what opens the URL"
            message = f"{url}: {str(error).strip().splitlines()[0]}"
            raise UnknownName(message, where="--store", remedy=remedy) from error
        files = fs.PyFileSystem(fs.FSSpecHandler(of_fsspec))
    return files, path.rstrip("/")


def open_store(folder: Path, url: str) -> RemoteStore:
    """Return the store in a folder, with its copy at a URL.

    Raises:
        ConfigError: It is no URL.
        Contradiction: The URL holds a key or password.
        UnknownName: Nothing that is installed can open it.
    """
    url = url.rstrip("/")
    parts = urlsplit(url)
    remedy = "give a URL such as s3://bucket/recbias or file:///mnt/share/recbias"
    if not parts.scheme or "://" not in url or not (parts.netloc or parts.path):
        raise ConfigError("is not a URL", where="--store", remedy=remedy)
    if "@" in parts.netloc:
        message = "the URL holds a key or password, which would be shown"
        remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, instead"
        raise Contradiction(message, where="--store", remedy=remedy)
    open_url(url)
    return RemoteStore(folder, url)
