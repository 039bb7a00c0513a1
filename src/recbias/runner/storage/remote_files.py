"""Files at a URL: what pyarrow, or fsspec if it is installed, can open, in few requests.

A server may take a second for each answer. Small files are written by one request, and the files
of a result are copied at the same time.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from recbias.core.errors import UnknownName, Unwritable

MAX_REQUESTS = 16
"""The number of requests that wait for an answer at the same time."""

CHUNK = 2**24
"""Bytes of a file that are asked for at once: a request each."""

Name = TypeVar("Name")
Answer = TypeVar("Answer")

_ADVICE: dict[int | None, str] = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space there"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "name a folder that you may write"),
    errno.ENOTDIR: "name a folder",
}
"""What to do about an error of a disk, by its number."""


@dataclass(frozen=True)
class RemoteFiles:
    """The files below a URL.

    Args:
        url: Their folder.
        folder: The folder of this machine that keeps the results, named in errors.

    Raises:
        Unwritable: Something there cannot be read or written.
    """

    url: str
    folder: Path

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, None if there is none."""
        with self._report("read"):
            files, prefix = open_url(self.url)
            try:
                with files.open_input_file(f"{prefix}/{name}") as stream:
                    content: bytes = stream.read()
                    return content
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with self._report("written"):
            files, prefix = open_url(self.url)
            with _open_output(files, f"{prefix}/{name}") as stream:
                stream.write(content)

    def delete(self, name: str) -> None:
        """Remove a file, which may be absent."""
        with self._report("written"):
            files, prefix = open_url(self.url)
            with suppress(FileNotFoundError):  # another machine removed it
                files.delete_file(f"{prefix}/{name}")

    def upload(self, paths: Mapping[str, Path]) -> None:
        """Copy files of this machine to their names at the URL, several at the same time."""
        ask_together(lambda name: self._upload(name, paths[name]), paths)

    def download(self, paths: Mapping[str, Path]) -> None:
        """Copy files of the URL to this machine, several at the same time; leave out absent ones.

        ``paths`` are their paths here, by the names at the URL.
        """
        ask_together(lambda name: self._download(name, paths[name]), paths)

    def _upload(self, name: str, path: Path) -> None:
        with self._report("written"):
            files, prefix = open_url(self.url)
            with path.open("rb") as source, _open_output(files, f"{prefix}/{name}") as stream:
                shutil.copyfileobj(source, stream)

    def _download(self, name: str, path: Path) -> None:
        with self._report("read"), suppress(FileNotFoundError):
            files, prefix = open_url(self.url)
            with files.open_input_file(f"{prefix}/{name}") as source, path.open("wb") as stream:
                for chunk in iter(partial(source.read, CHUNK), b""):
                    stream.write(chunk)

    @contextmanager
    def _report(self, done: str) -> Iterator[None]:
        """Raise what fails at the URL as Unwritable."""
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            message = f"it cannot be {done}: {reason}"
            is_local = self.url.startswith(("file:", "local:"))
            default = "name another folder" if is_local else "check its address, keys and network"
            advice = _ADVICE.get(getattr(error, "errno", None), default)
            remedy = f"{advice}; {self.folder} keeps the results"
            raise Unwritable(message, where=self.url, remedy=remedy) from error


def ask_together(ask: Callable[[Name], Answer], names: Iterable[Name]) -> list[Answer]:
    """Return the answer for each name; ``MAX_REQUESTS`` are waited for at the same time.

    >>> ask_together(str.upper, ["a", "b"])
    ['A', 'B']
    """
    names = list(names)
    if len(names) <= 1:
        return [ask(name) for name in names]
    with ThreadPoolExecutor(min(len(names), MAX_REQUESTS)) as threads:
        return list(threads.map(ask, names))


@cache
def open_url(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        UnknownName: Nothing that is installed can open it.
        Unwritable: The region of the bucket is not found: there is no such bucket, or no network.
    """
    import pyarrow as pa
    from pyarrow import fs

    try:
        files, path = fs.FileSystem.from_uri(url)
    except OSError as error:
        remedy = "check its address, keys and network, or set AWS_ENDPOINT_URL or AWS_REGION"
        message = f"it cannot be opened: {str(error).strip().splitlines()[0]}"
        raise Unwritable(message, where=url, remedy=remedy) from error
    except (pa.ArrowException, ValueError) as error:
        opened = _open_with_fsspec(url)
        if opened is None:
            reason = str(error).strip().splitlines()[0]
            remedy = "give s3://, gs:// or file:///, or install fsspec with what opens the URL"
            raise UnknownName(f"{url}: {reason}", where="--store", remedy=remedy) from error
        files, path = opened
    else:
        files = _write_at_once(url) or files
    return files, path.rstrip("/")


def _write_at_once(url: str) -> Any:
    """Return an S3 file system that writes a small file by one request in place of three.

    None for other URLs, and if this pyarrow has no such option.
    """
    import pyarrow as pa
    from pyarrow import fs

    if not url.startswith("s3://"):
        return None
    try:
        option = "&allow_delayed_open=true" if "?" in url else "?allow_delayed_open=true"
        files, _ = fs.FileSystem.from_uri(url + option)
    except (pa.ArrowException, ValueError):
        return None
    return files


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
