"""Download of datasets from their publishers, with checksums and in one atomic step.

An interrupted transfer is resumed where the server dates its files, and retried after failures.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml

from recbias.core.context import report_progress
from recbias.core.errors import DigestMismatch, DownloadFailed, UnknownName, Unwritable
from recbias.core.machine import lock_file
from recbias.core.text import normalize_name, suggest
from recbias.data import declared
from recbias.data.declared import find_folder, find_packed, list_declared, read_declaration

ATTEMPTS, PAUSE_S = 4, 1.0
"""The consecutive attempts without progress after which a transfer fails, and the pause after the
first of them, which doubles with every further one."""

_TIMEOUT_S = 60.0  # the longest silence of a server
_PIECE_BYTES = 2**18

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})  # a retry may succeed
_PROGRESS_BYTES = 2**16  # an attempt that receives less counts as a failure

T = TypeVar("T")


class RefusedRequest(DownloadFailed):
    """The server answers with an error that no retry changes; ``status`` is its code."""

    status = 0


class _Interrupted(Exception):
    """The transfer was interrupted and may be resumed."""


@contextmanager
def wrap_write_errors(folder: Path) -> Iterator[None]:
    """Raise Unwritable if the disk is full, or the folder is read-only or not a folder."""
    try:
        yield
    except OSError as error:
        remedy = "free disk space, or set --data to another folder"
        message = f"cannot be written: {error.strerror or error}"
        raise Unwritable(message, where=str(error.filename or folder), remedy=remedy) from error


def transfer(url: str, target: Path) -> Path:
    """Download a file; an interrupted download in ``<target>.part`` is resumed.

    Raises:
        DownloadFailed: The server does not have the file, or the network failed too often.
        Unwritable: The file cannot be written.
    """
    part = target.with_name(f"{target.name}.part")
    with wrap_write_errors(target.parent):
        _retry(partial(_resume, url, part), url, partial(_measure, part))
        return part.replace(target)


def fetch_text(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Return a small text file.

    Raises:
        DownloadFailed: The server does not have the file, or the network failed too often.
    """

    def read() -> str:
        with _open_url(url, headers or {}) as response:
            announced, text = response.length or 0, b"".join(_read_pieces(response))
        if len(text) < announced:
            raise _Interrupted("the connection ended early")
        return text.decode("utf-8", "replace")

    return _retry(read, url, lambda: 0)


def _retry(attempt: Callable[[], T], url: str, measure: Callable[[], int]) -> T:
    """Return what an attempt returns; DownloadFailed after too many without progress in bytes."""
    failures, largest = 0, 0
    while True:
        try:
            return attempt()
        except _Interrupted as error:
            size = measure()
            failures = 1 if size - largest >= _PROGRESS_BYTES else failures + 1
            largest = max(largest, size)
            if failures >= ATTEMPTS:
                message = f"download failed after {failures} attempts with little or no progress"
                remedy = "try again later, which resumes; or download the file by hand"
                raise DownloadFailed(f"{message}: {error}", where=url, remedy=remedy) from error
        time.sleep(PAUSE_S * 2 ** (failures - 1))


@contextmanager
def _open_url(url: str, headers: Mapping[str, str]) -> Iterator[Any]:
    if not url.startswith(("http://", "https://")):
        raise DownloadFailed("is not a web address", where=url)
    headers = {"User-Agent": "recbias", "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme is checked
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        message = f"the server answers {error.code} {error.reason}"
        if error.code in _TRANSIENT:
            raise _Interrupted(message) from error
        refused = RefusedRequest(message, where=url, remedy="see the publisher's site")
        refused.status = error.code
        raise refused from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Interrupted(f"no answer: {error}") from error
    with response:
        yield response


def _read_pieces(response: Any) -> Iterator[bytes]:
    try:
        while piece := response.read1(_PIECE_BYTES):
            yield piece
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Interrupted(f"the connection broke: {error}") from error


def _measure(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _resume(url: str, part: Path) -> None:
    """Download the rest of a file; all of it if the server has another version than the part.

    The part has the time of the file on the server, which says whether it is the same.
    """
    if size := _measure(part):
        date = formatdate(part.stat().st_mtime, usegmt=True)
        headers = {"Range": f"bytes={size}-", "If-Range": date}
    try:
        with _open_url(url, headers if size else {}) as response:
            size = size if response.status == HTTPStatus.PARTIAL_CONTENT else 0
            end = -1 if response.length is None else size + response.length
            with _keep_date(part, response), part.open("ab" if size else "wb") as stream:
                for piece in _read_pieces(response):
                    stream.write(piece)
                    size += len(piece)
                    report_progress(f"fetch {part.stem}", size, max(end, size))
    except RefusedRequest as error:
        if error.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        part.unlink()  # of another version
        raise _Interrupted(error.message) from error
    if size < end:
        raise _Interrupted(f"the connection ended after {size:,} of {end:,} bytes")


@contextmanager
def _keep_date(part: Path, response: Any) -> Iterator[None]:
    """Give the part the time of the file on the server, or another one if it has none."""
    date = response.headers.get("Last-Modified")
    seconds = parsedate_to_datetime(date).timestamp() if date else 0
    try:
        yield
    finally:
        os.utime(part, (seconds, seconds))


@dataclass(frozen=True, kw_only=True)
class Source:
    """The address and the terms of a published dataset.

    Args:
        name: The published name.
        base: The publisher's folder of files.
        files: The files in it: one archive, or files that are stored as they are.
        digest: ``md5`` if the publisher has a ``<file>.md5`` for each file, or the SHA-256 of each
            file.
        inner: The folder in the archive; empty for its only folder.
        folder: The folder below the data folder; empty for the name.
        holds: Files that the folder must contain.
        counts: The published numbers of users, items and interactions.
        licence: A summary of the terms.
        citation: The publication to cite.
        manual: Instructions if the publisher requires consent to its terms.
    """

    name: str
    licence: str
    citation: str
    files: Sequence[str]
    base: str = ""
    digest: str | Mapping[str, str] = ""
    inner: str = ""
    folder: str = ""
    holds: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    manual: str = ""

    @property
    def is_archive(self) -> bool:
        """Whether the dataset is published as one archive."""
        return len(self.files) == 1 and self.files[0].endswith(".zip")

    def terms(self) -> str:
        """Return the licence and the citation, as printed before a download."""
        return f"{self.licence}\nPlease cite: {self.citation}"

    def list_missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks, with or without ``.gz``."""
        return [name for name in self.holds if not find_packed(folder / name).is_file()]


def read_sources() -> dict[str, Source]:
    """Read the sources of all datasets, by name."""
    path = Path(__file__).with_name("sources.yaml")
    entries: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    del entries["_terms"]
    sources = {
        name: Source(**({"name": name, "folder": name, "holds": entry["files"]} | entry))
        for name, entry in entries.items()
    }
    return sources | {source.name: source for source in _read_declared()}


def _read_declared() -> Iterator[Source]:
    """Yield the sources of the declared datasets: one for each choice of the settings ``each``."""
    for name in list_declared():
        entry, cls = read_declaration(name), getattr(declared, name)
        if "download" not in entry:  # its several downloads are in sources.yaml
            continue
        download = dict(entry["download"])
        each = download.pop("each", ())
        terms = {key: entry[key] for key in ("licence", "citation", "counts") if key in entry}
        side = {"side": tuple(entry["sides"])} if "sides" in entry else {}
        for chosen in product(*(get_args(cls.__annotations__[setting]) for setting in each)):
            dataset = cls(**dict(zip(each, chosen, strict=True)), **side)
            names = dataset.list_files()
            fields = {"files": [] if "manual" in download else names, "holds": names}
            yield Source(name=dataset.fetch_name, **({"folder": name} | fields | terms | download))


def find_source(name: str) -> Source:
    """Return the source of a dataset, ignoring case and separators in the name.

    Raises:
        UnknownName: There is no such dataset.
    """
    known = read_sources()
    by_normalized = {normalize_name(source_name): source for source_name, source in known.items()}
    if source := by_normalized.get(normalize_name(name)):
        return source
    raise UnknownName(f"no dataset is called {name!r}", remedy=suggest(name, known))


def fetch(name: str, data: Path, *, source: Source | None = None) -> Path:
    """Download a dataset and return its folder; does nothing if the folder is complete.

    An interrupted download is kept in ``<data>/.fetching`` and resumed. The dataset is moved to
    its folder only when it is complete and its checksum is the published one.

    Args:
        name: The published name.
        data: The folder of datasets; it is created if it does not exist.
        source: Where it is; by default that of the package.

    Raises:
        UnknownName: There is no such dataset.
        DownloadFailed: The server does not have the dataset or sends an invalid one, or the
            publisher requires consent to its terms.
        DigestMismatch: The checksum of a file is not the published one.
        Unwritable: The data folder cannot be written.
    """
    source = source or find_source(name)
    folder = find_folder(source.folder, data, holds=source.holds[0], inner=source.inner)
    missing = source.list_missing(folder)
    if not missing:
        return folder
    if source.manual:
        message = f"{source.name} cannot be downloaded automatically. {source.manual}"
        remedy = f"put {' and '.join(source.holds)} (also with .gz) into {folder}"
        raise DownloadFailed(message, remedy=remedy)
    if source.is_archive and folder.is_dir() and any(folder.iterdir()):
        message = f"exists, but lacks {', '.join(missing)}"
        raise Unwritable(message, where=str(folder), remedy="move it away, then fetch again")
    with wrap_write_errors(data), _lock(data / ".fetching" / source.name) as work:
        if source.is_archive:
            _install_archive(_download(source.files[0], source, work), folder, source)
        for file in [] if source.is_archive else missing:
            path, target = _download(file, source, work), folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        shutil.rmtree(work)
    with suppress(OSError):  # another dataset may be in the same folder
        work.parent.rmdir()
    return folder


@contextmanager
def _lock(work: Path) -> Iterator[Path]:
    """Create the folder of the download and lock it against other processes."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            lock_file(lock.fileno(), waits=False)
        except BlockingIOError as error:
            message = "is being downloaded by another process"
            remedy = "wait until that process has finished"
            raise DownloadFailed(message, where=str(work), remedy=remedy) from error
        yield work


def _download(name: str, source: Source, work: Path) -> Path:
    """Download a file and verify its checksum; a file with a wrong checksum is removed."""
    target, url = work / name, source.base + name
    target.parent.mkdir(parents=True, exist_ok=True)
    algorithm, published = _find_checksum(name, source)
    if not target.is_file():
        transfer(url, target)
    if not algorithm:
        return target
    with target.open("rb") as stream:
        checksum = hashlib.file_digest(stream, algorithm).hexdigest()
    if checksum != published:
        target.unlink()
        message = f"the {algorithm} is {checksum}, the published one {published}"
        remedy = "fetch it again; if that does not help, the publisher's file is damaged"
        raise DigestMismatch(message, where=url, remedy=remedy)
    return target


def _find_checksum(name: str, source: Source) -> tuple[str, str]:
    """Return the algorithm and the published checksum of a file; empty if there is none."""
    if isinstance(source.digest, Mapping):
        return ("sha256", source.digest[name].lower()) if name in source.digest else ("", "")
    if not source.digest:
        return "", ""
    url = f"{source.base}{name}.md5"
    checksum = re.search(r"\b[0-9a-fA-F]{32}\b", fetch_text(url))
    if not checksum:
        raise DownloadFailed("contains no md5", where=url, remedy="see the publisher's site")
    return "md5", checksum[0].lower()


def _install_archive(archive: Path, folder: Path, source: Source) -> None:
    """Unpack a zip archive next to the folder, then move it there in one step.

    A damaged or incomplete archive is removed; after a full disk only the archive is kept.
    """
    unpacked = archive.with_name("unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(unpacked)
        _find_inner_folder(unpacked, archive, source).rename(folder)
    except (EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, ValueError) as error:
        archive.unlink()
        message = f"is damaged or truncated, or cannot be unpacked: {error}"
        raise DownloadFailed(message, where=str(archive), remedy="fetch it again") from error
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)


def _find_inner_folder(unpacked: Path, archive: Path, source: Source) -> Path:
    """Return the folder of an unpacked archive with the dataset: ``inner``, or the only one."""
    paths = [path for path in unpacked.iterdir() if path.name != "__MACOSX"]
    folder = paths[0] if len(paths) == 1 and paths[0].is_dir() else unpacked
    if source.inner and (unpacked / source.inner).is_dir():
        folder = unpacked / source.inner
    if missing := source.list_missing(folder):
        archive.unlink()
        message = f"the archive lacks {', '.join(missing)}"
        raise DownloadFailed(message, where=source.base + archive.name)
    return folder
