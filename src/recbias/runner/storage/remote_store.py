"""A store whose results are also at a URL: for machines without a shared disk.

Results are read from and written to a folder of this machine. What it lacks is copied from the
URL, and what is computed is copied to it, ``stage.json`` last: without it a result is incomplete.
"""

from __future__ import annotations

import errno
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recbias.core.errors import ConfigError, Contradiction, UnknownName, Unwritable
from recbias.core.records import Stored
from recbias.core.stage_context import warn
from recbias.runner.storage.records import RECORD, unseal_and_parse
from recbias.runner.storage.store import HOST, Store

SLOW_SECONDS = 3.0
"""The time for a small file, written, read and removed, from which a store counts as slow."""

_ADVICE: dict[int | None, str] = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "name a folder that you may write"),
    errno.ENOTDIR: "name a folder",
}
"""What to do about an error of a disk, by its number."""


@dataclass(frozen=True)
class RemoteStore(Store):
    """A folder of results, and a copy of them at a URL.

    Checkpoints, replies of language models and values of texts are in the folder only.

    Args:
        url: Where the copy is, such as ``s3://bucket/recbias`` or ``file:///mnt/share/recbias``:
            a URL that pyarrow, or fsspec if it is installed, can open.
    """

    url: str = ""

    def prepare(self) -> None:
        """Create the folder; check that the URL can be written and read; warn if it is slow.

        Raises:
            Unwritable: It cannot be written or read.
        """
        super().prepare()
        name, content = f"tmp/{HOST}-{uuid.uuid4().hex}", uuid.uuid4().bytes
        begin = time.perf_counter()
        with self._report("written"):
            files, prefix = open_url(self.url)
            with _open_output(files, f"{prefix}/{name}") as stream:
                stream.write(content)
        is_same = self._read(name) == content
        with suppress(OSError):
            files.delete_file(f"{prefix}/{name}")
        if not is_same:
            message = "it returned other bytes than were written"
            raise Unwritable(message, where=self.url, remedy="give another --store")
        seconds = time.perf_counter() - begin
        if seconds > SLOW_SECONDS:
            message = f"{seconds:.1f} s to write, read and remove a small file"
            warn(f"the store {self.url} is slow: {message}")

    def record(self, digest: str) -> Stored | None:
        """Return the record of a result of the folder, else of the URL; None if both lack it."""
        return super().record(digest) or self._read_record(digest)

    def has(self, digest: str) -> bool:
        """Return whether a result is complete in the folder, or recorded at the URL."""
        return super().has(digest) or self._read_record(digest) is not None

    def load(self, digest: str) -> Any:
        """Return a result; what the folder lacks or has damaged is copied from the URL first."""
        value = super().load(digest) if super().has(digest) else None
        if value is None and self._download(digest):
            value = super().load(digest)
        return value

    def save(self, digest: str, value: Any, stored: Stored, *, replace: bool = False) -> None:
        """Write a result to the folder and to the URL; unless ``replace``, stored results stay."""
        super().save(digest, value, stored, replace=replace)
        if not replace and self._read_record(digest) is not None:
            return
        record = Store.record(self, digest)
        names = [*(record.files if record else ()), RECORD]
        with self._report("written"):
            files, prefix = open_url(self.url)
            for name in names:
                target = f"{prefix}/{digest[:2]}/{digest}/{name}"
                with (
                    (self.path(digest) / name).open("rb") as source,
                    _open_output(files, target) as stream,
                ):
                    shutil.copyfileobj(source, stream)

    def _download(self, digest: str) -> bool:
        """Copy a result from the URL to the folder; return whether it is complete and intact."""
        record = self._read_record(digest)
        if record is None:
            return False
        with self.temporary() as folder:
            copy = Store(folder)
            copy.path(digest).mkdir(parents=True)
            for name in (*record.files, RECORD):
                content = self._read(f"{digest[:2]}/{digest}/{name}")
                if content is not None:
                    (copy.path(digest) / name).write_bytes(content)
            if copy.load(digest) is None:
                self._forget(digest)
                return False
            if self.path(digest).exists():
                self.remove(digest)
            self.path(digest).parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another process copied it at the same time
                copy.path(digest).rename(self.path(digest))
        return super().has(digest)

    def _forget(self, digest: str) -> None:
        """Remove the record of a damaged result at the URL, so that it is stored again."""
        with self._report("written"):
            files, prefix = open_url(self.url)
            with suppress(FileNotFoundError):  # another machine removed it
                files.delete_file(f"{prefix}/{digest[:2]}/{digest}/{RECORD}")

    def _read_record(self, digest: str) -> Stored | None:
        content = self._read(f"{digest[:2]}/{digest}/{RECORD}")
        return None if content is None else unseal_and_parse(content, digest)

    def _read(self, name: str) -> bytes | None:
        """Return the content of a file at the URL, None if there is none."""
        with self._report("read"):
            files, prefix = open_url(self.url)
            try:
                with files.open_input_file(f"{prefix}/{name}") as stream:
                    content: bytes = stream.read()
                    return content
            except FileNotFoundError:
                return None

    @contextmanager
    def _report(self, done: str) -> Iterator[None]:
        """Raise what fails at the URL as Unwritable."""
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            message = f"it cannot be {done}: {reason}"
            advice = _ADVICE.get(
                getattr(error, "errno", None), "check its address, keys and network"
            )
            remedy = f"{advice}; {self.folder} keeps the results"
            raise Unwritable(message, where=self.url, remedy=remedy) from error


def open_store(folder: Path, url: str | None) -> Store:
    """Return the store in a folder, with its copy at a URL unless that is None.

    Raises:
        ConfigError: It is no URL.
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
    if "@" in parts.netloc:
        message = "the URL holds a key or password, which would be shown"
        remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile, instead"
        raise Contradiction(message, where="--store", remedy=remedy)
    open_url(url)
    return RemoteStore(folder, url)


@cache
def open_url(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        UnknownName: Nothing that is installed can open it.
    """
    import pyarrow as pa
    from pyarrow import fs

    try:
        files, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowException, ValueError) as error:
        opened = _open_with_fsspec(url)
        if opened is None:
            reason = str(error).strip().splitlines()[0]
            remedy = "give s3://, gs:// or file:///, or install fsspec with what opens the URL"
            raise UnknownName(f"{url}: {reason}", where="--store", remedy=remedy) from error
        files, path = opened
    return files, path.rstrip("/")


def _open_with_fsspec(url: str) -> tuple[Any, str] | None:
    """Return the file system and path by fsspec, None if it cannot open the URL."""
    from pyarrow import fs

    try:
        from fsspec.core import url_to_fs

        files, path = url_to_fs(url)
    except (ImportError, ValueError):
        return None
    return fs.PyFileSystem(fs.FSSpecHandler(files)), path


@contextmanager
def _open_output(files: Any, path: str) -> Iterator[Any]:
    """Open a file for writing; a file system with real folders needs the folder first."""
    try:
        stream = files.open_output_stream(path)
    except FileNotFoundError:
        files.create_dir(path.rpartition("/")[0], recursive=True)
        stream = files.open_output_stream(path)
    with stream:
        yield stream
