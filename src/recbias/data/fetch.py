"""Unpacking of untrusted archives: no links, and no files outside the target folder.

When a download is tried again, and when it is given up.
HTTP connections to untrusted servers: a minimum rate, a maximum size, no downgrade.
Download of one file over HTTP, resumed after interruptions and retried after failures.
Download of datasets from their publishers, with checksums and in one atomic step.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import json
import re
import shutil
import stat
import sys
import tarfile
import time
import unicodedata
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from recbias.core.context import ProgressListener, report_progress
from recbias.core.errors import DigestMismatch, DownloadFailed, UnknownName, Unwritable
from recbias.core.machine import lock_file, raise_shortage, write_to_disk
from recbias.core.text import normalize_name, suggest
from recbias.data.books_yelp import find_folder
from recbias.formats.archives import (
    ARCHIVE_ERRORS,
    BoundedReads,
    UnsupportedArchive,
    open_zip,
    read_name,
    require_known_format,
)

CHUNK_BYTES = 2**20
MAX_RATIO, FREE_BYTES = 30, 100 * 2**20
"""An archive may unpack to 30 times its size and 100 MiB; ratings in text compress to a sixth."""

MOST_MEMBERS, LONGEST_NAME, LONGEST_PATH = 10_000, 255, 500
"""The most files and folders of an archive, and the most bytes of the name and path of one."""

MOST_HEADER_BYTES = 2**20
"""The most bytes of the headers of a member of a tar archive, which may state any length."""

REMEDY = "the archive differs from the published one; no file of it was kept"


def unpack(archive: Path, into: Path, *, max_bytes: int | None = None) -> None:
    """Unpack a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` archive; copy any other file.

    The unpacked size is limited to ``max_bytes``, by default 30 times the size of the archive and
    100 MiB, whatever the headers of the archive say.

    Raises:
        DownloadFailed: A member is outside the folder, is a link, a device or a sparse file, has
            too long a name, or differs from another by letter case only; the archive is damaged,
            it unpacks to too many bytes or members, or it is packed in a way
            that is not read.
    """
    n_bytes = 0
    names = _Names(archive)
    if max_bytes is None:
        max_bytes = MAX_RATIO * archive.stat().st_size + FREE_BYTES
    with closing(_open_members(archive)) as members:
        for member in members:
            target = names.resolve(member.name, into)
            with _refuse_conflicts(archive):
                (target.parent if member.source else target).mkdir(parents=True, exist_ok=True)
                if member.source is None:
                    continue
                with member.source, target.open("xb") as stream:
                    for piece in _read_pieces(member, archive):
                        n_bytes += len(piece)
                        if n_bytes > max_bytes:
                            message = f"unpacks to more than {max_bytes:,} bytes"
                            raise DownloadFailed(message, where=str(archive), remedy=REMEDY)
                        stream.write(piece)


def find_inner_folder(unpacked: Path, inner: str = "") -> Path:
    """Return the folder of an unpacked archive with the dataset: ``inner``, or the only one."""
    if inner and (unpacked / inner).is_dir():
        return unpacked / inner
    paths = [path for path in unpacked.iterdir() if path.name != "__MACOSX"]
    return paths[0] if len(paths) == 1 and paths[0].is_dir() else unpacked


@dataclass(frozen=True)
class _Member:
    """A member of an archive: its size as its header states it, no source for a folder."""

    name: str
    n_bytes: int = 0
    source: IO[bytes] | None = None


@dataclass
class _Names:
    """The names of the members of an archive so far, by how each is written.

    Systems that ignore letter case or normalize Unicode would take one file for another.
    """

    archive: Path
    n_members: int = 0
    spellings: dict[str, str] = field(default_factory=dict)

    def resolve(self, name: str, into: Path) -> Path:
        """Return the path of the next member; DownloadFailed if it may not have this name."""
        self.n_members += 1
        if self.n_members > MOST_MEMBERS:
            message = f"contains more than {MOST_MEMBERS:,} files and folders"
            raise DownloadFailed(message, where=str(self.archive), remedy=REMEDY)
        path = PurePosixPath(name)
        is_outside = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
        if is_outside or ":" in "".join(path.parts[:1]):
            raise self._refuse(name, "is outside its folder")
        sizes = [len(part.encode(errors="replace")) for part in path.parts]
        if max(sizes, default=0) > LONGEST_NAME or sum(sizes) + len(sizes) > LONGEST_PATH:
            raise self._refuse(name, "has too long a name")
        for each in (path, *path.parents[:-1]):
            parts = [part.rstrip(". ") for part in each.parts]
            key = unicodedata.normalize("NFC", "/".join(parts)).casefold()
            if self.spellings.setdefault(key, str(each)) != str(each):
                other = self.spellings[key]
                raise self._refuse(name, f"some systems do not distinguish from {other[:60]!r}")
        return into.joinpath(*path.parts)

    def _refuse(self, name: str, problem: str) -> DownloadFailed:
        return _refuse_member(name, problem, self.archive)


@contextmanager
def _wrap_read_errors(archive: Path) -> Iterator[None]:
    try:
        yield
    except UnsupportedArchive as error:
        raise DownloadFailed(str(error), where=str(archive), remedy=error.remedy) from error
    except ARCHIVE_ERRORS as error:
        raise_shortage(error)
        raise _make_damage_error(error, archive) from error


@contextmanager
def _refuse_conflicts(archive: Path) -> Iterator[None]:
    """Refuse a member at the path of another, or one within a file."""
    try:
        yield
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise _make_damage_error(error, archive) from error


def _make_damage_error(error: BaseException, archive: Path) -> DownloadFailed:
    message = f"is damaged or truncated: {error}"
    return DownloadFailed(message, where=str(archive), remedy="fetch it again")


def _read_pieces(member: _Member, archive: Path) -> Generator[bytes]:
    """Yield the content of a member, which must be as long as its header says."""
    n_bytes = 0
    with _wrap_read_errors(archive):
        while piece := cast("IO[bytes]", member.source).read(CHUNK_BYTES):
            n_bytes += len(piece)
            yield piece
        if n_bytes != member.n_bytes:
            message = f"{member.name[:60]!r} has {n_bytes:,} bytes, not {member.n_bytes:,}"
            raise EOFError(message)


def _open_members(archive: Path) -> Generator[_Member]:
    """Yield the members of an archive; the only one of another file is the file itself."""
    with _wrap_read_errors(archive):
        if archive.name.endswith((".zip", ".tar", ".tar.gz", ".tgz")):
            with archive.open("rb") as stream:
                require_known_format(stream.read(8))
            is_zip = archive.name.endswith(".zip")
            yield from (_open_zipped if is_zip else _open_tarred)(archive)
        else:
            yield _Member(archive.name, archive.stat().st_size, archive.open("rb"))


def _open_zipped(archive: Path) -> Generator[_Member]:
    with archive.open("rb") as stream, open_zip(stream) as packed:
        for entry in packed.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
                raise _refuse_member(read_name(entry), "is a link or a device", archive)
            is_folder = entry.filename.endswith("/")
            source = None if is_folder else packed.open(entry)
            yield _Member(read_name(entry), entry.file_size, source)


def _open_tarred(archive: Path) -> Generator[_Member]:
    is_plain = archive.name.endswith(".tar")
    with cast("IO[bytes]", archive.open("rb") if is_plain else gzip.open(archive)) as stream:
        reads = BoundedReads(stream, MOST_HEADER_BYTES)
        with tarfile.open(fileobj=reads, mode="r:") as tar:  # type: ignore[call-overload]
            while (member := tar.next()) is not None:
                if member.issparse():
                    raise _refuse_member(member.name, "is a sparse file", archive)
                if not (member.isreg() or member.isdir()):
                    raise _refuse_member(member.name, "is a link or a device", archive)
                reads.left = sys.maxsize
                source = tar.extractfile(member) if member.isreg() else None
                yield _Member(member.name, member.size, source)
                reads.left = MOST_HEADER_BYTES


def _refuse_member(name: str, problem: str, archive: Path) -> DownloadFailed:
    shown = name if len(name) <= LONGEST_NAME else f"{name[:60]}..."
    message = f"contains {shown!r}, which {problem}"
    return DownloadFailed(message, where=str(archive), remedy=REMEDY)


TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Status codes after which a retry may succeed."""


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a transfer is retried and when it is given up.

    Args:
        attempts: Number of consecutive attempts without progress before the transfer fails.
        pause_s: Pause after the first of them; it doubles with every further attempt.
        timeout_s: Longest silence of a server.
        window_s: Length of the windows in which the rate is checked.
        min_bytes: Least number of bytes in each window; an attempt that receives less has made no
            progress.
    """

    attempts: int = 4
    pause_s: float = 1.0
    timeout_s: float = 60.0
    window_s: float = 60.0
    min_bytes: int = 2**16

    def wait(self, failures: int) -> None:
        """Pause after so many failed attempts."""
        if failures:
            time.sleep(self.pause_s * 2 ** (failures - 1))


RETRY_REMEDY = "try again later, which resumes the download; or download the file by hand"
SITE_REMEDY = "see the publisher's site"


class InterruptedTransfer(Exception):
    """The transfer was interrupted and may be resumed."""


class FileChanged(InterruptedTransfer):
    """The partial file is of another version: the transfer starts again."""


class RefusedRequest(DownloadFailed):
    """The server answers with an error that no retry changes; ``status`` is its code."""

    status = 0


@contextmanager
def open_url(url: str, headers: Mapping[str, str], policy: RetryPolicy) -> Iterator[Any]:
    """Open an ``http`` or ``https`` address and yield the response.

    Raises:
        DownloadFailed: The server does not have the file, or its answer is invalid.
        InterruptedTransfer: A retry may succeed.
    """
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise DownloadFailed("is not a web address", where=url)
    headers = {"User-Agent": "recbias", "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme is checked
    monitor = _RateMonitor(policy)
    opener = urllib.request.build_opener(SecureRedirects, _MonitoredHandler(monitor))
    try:
        response = opener.open(request, timeout=policy.timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        message = f"the server answers {error.code} {error.reason}"
        if error.code in TRANSIENT:
            raise InterruptedTransfer(message) from error
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and "Range" in headers:
            raise FileChanged("the published file has changed") from error
        refused = RefusedRequest(message, where=url, remedy=SITE_REMEDY)
        refused.status = error.code
        raise refused from error
    except (OSError, http.client.HTTPException) as error:
        raise InterruptedTransfer(f"no answer: {error}") from error
    except ValueError as error:  # a redirect to an invalid address
        message = f"the server's answer is invalid: {error}"
        raise DownloadFailed(message, where=url, remedy=SITE_REMEDY) from error
    monitor.start_window()
    with response:
        yield response


def read_piece(response: Any, max_bytes: int) -> bytes:
    """Return the next bytes of a body, at most ``max_bytes``; none at its end.

    Raises:
        DownloadFailed: The body is invalid.
        InterruptedTransfer: The connection broke, or the server is too slow.
    """
    try:
        piece = bytes(response.read1(max_bytes))
    except (OSError, http.client.HTTPException) as error:
        raise InterruptedTransfer(f"the connection broke: {error}") from error
    if response.chunked and (response.chunk_left or 0) < 0:
        message = "the server sends a chunk of a negative size"
        raise DownloadFailed(message, where=response.url, remedy=SITE_REMEDY)
    response.monitor.received += len(piece)
    return piece


def parse_content_length(url: str, headers: Mapping[str, str]) -> int:
    """Return the announced size of a body in bytes; -1 if there is none.

    Raises:
        DownloadFailed: The size is not a number of bytes.
    """
    length = (headers.get("Content-Length") or "").strip()
    if length and not re.fullmatch("[0-9]{1,18}", length):
        message = f"the server's Content-Length is not a number of bytes: {length!r}"
        raise DownloadFailed(message, where=url, remedy=RETRY_REMEDY)
    return int(length) if length else -1


class SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects from https to any other scheme, and to schemes other than http."""

    def redirect_request(self, req: Any, *arguments: Any) -> Any:
        """Return the redirected request.

        Raises:
            DownloadFailed: The new address is not https, or not http.
        """
        new_url = str(arguments[-1])
        if not new_url.startswith(("http:", "https:")):
            raise DownloadFailed(f"leads to {new_url}, which is not http", where=req.full_url)
        if req.full_url.startswith("https:") and not new_url.startswith("https:"):
            raise DownloadFailed(f"leads to {new_url}, which is not https", where=req.full_url)
        return super().redirect_request(req, *arguments)


class _RateMonitor:
    """Checks in every window of time that a server sends enough of the body."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self.start_window()

    def start_window(self) -> None:
        """Start a window; ``received`` counts the bytes of the body in it."""
        self._start, self.received = time.monotonic(), 0

    def check(self) -> None:
        """Start the next window if this one is over; TimeoutError if it received too few bytes."""
        elapsed = time.monotonic() - self._start
        if elapsed < self._policy.window_s:
            return
        if self.received < self._policy.min_bytes:
            raise TimeoutError(f"received only {self.received:,} bytes in {elapsed:.0f} s")
        self.start_window()


class _MonitoredStream(io.RawIOBase):
    """The bytes of a connection, including headers and chunk sizes; every read checks the rate."""

    def __init__(self, raw: io.RawIOBase, monitor: _RateMonitor) -> None:
        self._raw, self._monitor = raw, monitor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._monitor.check()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _MonitoredResponse(http.client.HTTPResponse):
    def __init__(self, *arguments: Any, monitor: _RateMonitor, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.monitor = monitor
        self.fp = io.BufferedReader(_MonitoredStream(self.fp.detach(), monitor))


class _MonitoredHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections whose responses are monitored."""

    def __init__(self, monitor: _RateMonitor) -> None:
        super().__init__()
        self._monitor = monitor

    def http_open(self, req: Any) -> Any:
        return self.do_open(partial(self._connect, http.client.HTTPConnection), req)

    def https_open(self, req: Any) -> Any:
        return self.do_open(partial(self._connect, http.client.HTTPSConnection), req)

    def _connect(self, connection_class: Any, host: str, **options: Any) -> Any:
        connection = connection_class(host, **options)
        connection.response_class = partial(_MonitoredResponse, monitor=self._monitor)
        return connection


PIECE_BYTES = 2**18
MAX_TEXT_BYTES = 2**16
MAX_BYTES = 20 * 2**30
"""The maximum size of a file, unless its source declares another."""


@dataclass(frozen=True)
class _RemoteFile:
    """The version of a file that is being downloaded; its size is -1 if it is not announced."""

    url: str
    size: int = -1
    etag: str = ""
    modified: str = ""


@contextmanager
def wrap_write_errors(folder: Path) -> Iterator[None]:
    """Raise Unwritable if the disk is full, or the folder is read-only or not a folder."""
    try:
        yield
    except OSError as error:
        remedy = "free disk space, or set --data to another folder"
        message = f"cannot be written: {error.strerror or error}"
        raise Unwritable(message, where=str(error.filename or folder), remedy=remedy) from error


def transfer(
    url: str,
    target: Path,
    *,
    progress: ProgressListener = report_progress,
    policy: RetryPolicy | None = None,
    max_bytes: int = MAX_BYTES,
) -> Path:
    """Download a file; an interrupted download in ``<target>.part`` is resumed.

    ``progress`` receives the number of downloaded bytes and the size, which is at most
    ``max_bytes``, whatever the server announces.

    Raises:
        DownloadFailed: The server does not have the file, its answer is invalid or too long, or
            the network failed too often.
        Unwritable: The file cannot be written.
    """
    policy = policy or RetryPolicy()
    part = target.with_name(f"{target.name}.part")
    failures, largest_size, problem = 0, 0, ""
    while failures < policy.attempts:
        policy.wait(failures)
        with wrap_write_errors(target.parent):
            try:
                _resume(url, part, progress, policy, max_bytes)
            except InterruptedTransfer as error:
                if isinstance(error, FileChanged):
                    part.unlink(missing_ok=True)
                problem = str(error)
                size = part.stat().st_size if part.exists() else 0
                failures = 1 if size - largest_size >= policy.min_bytes else failures + 1
                largest_size = max(largest_size, size)
            else:
                part.replace(target)
                _get_version_path(part).unlink(missing_ok=True)
                return target
    message = f"download failed after {failures} attempts with little or no progress: {problem}"
    raise DownloadFailed(message, where=url, remedy=RETRY_REMEDY)


def fetch_text(
    url: str,
    *,
    policy: RetryPolicy | None = None,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = MAX_TEXT_BYTES,
) -> str:
    """Return a small text file: at most its first ``max_bytes``.

    Raises:
        DownloadFailed: The server does not have the file, or the network failed too often.
    """
    policy = policy or RetryPolicy()
    problem = ""
    for failures in range(policy.attempts):
        policy.wait(failures)
        try:
            with open_url(url, headers or {}, policy) as response:
                announced = parse_content_length(response.url, response.headers)
                text = b""
                while n_left := max_bytes - len(text):
                    if not (piece := read_piece(response, n_left)):
                        break
                    text += piece
                if len(text) >= min(announced, max_bytes):
                    return text.decode("utf-8", "replace")
                problem = "the connection ended early"
        except InterruptedTransfer as error:
            problem = str(error)
    raise DownloadFailed(f"download failed: {problem}", where=url, remedy=RETRY_REMEDY)


def _get_version_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _load_version(part: Path, url: str) -> tuple[_RemoteFile, int]:
    """Return the version of a partial file and its size; 0 if the version is unknown."""
    with suppress(FileNotFoundError, ValueError, TypeError):
        version = _RemoteFile(**json.loads(_get_version_path(part).read_text(encoding="utf-8")))
        if version.url == url:
            return version, part.stat().st_size
    return _RemoteFile(url), 0


def _resume(
    url: str, part: Path, progress: ProgressListener, policy: RetryPolicy, max_bytes: int
) -> None:
    version, size = _load_version(part, url)
    if size and size == version.size:
        return
    headers = {"Range": f"bytes={size}-"} if size else {}
    if size and (condition := version.etag or version.modified):
        headers["If-Range"] = condition
    with open_url(url, headers, policy) as response:
        if response.status == HTTPStatus.PARTIAL_CONTENT:
            if not _is_continuation(response.headers, version, size):
                raise FileChanged("the published file has changed")
        else:
            version, size = _parse_version(url, response.headers), 0
        if version.size > max_bytes:
            raise _refuse_size(url, max_bytes)
        if not size:
            text = json.dumps(asdict(version))
            _get_version_path(part).write_text(text, encoding="utf-8")
        with part.open("ab" if size else "wb") as stream:
            _append_body(response, stream, size, version, progress, max_bytes)


def _parse_version(url: str, headers: Mapping[str, str]) -> _RemoteFile:
    size = parse_content_length(url, headers)
    etag = headers.get("ETag") or ""
    strong_etag = "" if etag.startswith("W/") else etag
    return _RemoteFile(url, size, strong_etag, headers.get("Last-Modified") or "")


def _is_continuation(headers: Mapping[str, str], version: _RemoteFile, size: int) -> bool:
    """Return whether a response continues a partial file at its end, in the same version."""
    pattern = "bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})"
    positions = re.fullmatch(pattern, headers.get("Content-Range") or "")
    if not positions or [int(positions[1]), int(positions[2])] != [size, version.size]:
        return False
    return not version.etag or _parse_version(version.url, headers).etag in {"", version.etag}


def _append_body(
    response: Any,
    stream: IO[bytes],
    size: int,
    version: _RemoteFile,
    progress: ProgressListener,
    max_bytes: int,
) -> None:
    """Append a body to a file; one longer than announced or allowed is removed again."""
    name = Path(urllib.parse.urlsplit(version.url).path).name
    start, limit = size, version.size if version.size >= 0 else max_bytes
    while piece := read_piece(response, PIECE_BYTES):
        size += len(piece)
        if size > limit:
            stream.truncate(start)
            raise _refuse_size(version.url, limit)
        stream.write(piece)
        progress(f"fetch {name}", size, max(version.size, size))
    stream.flush()
    write_to_disk(stream.fileno())
    if version.size >= 0 and size != version.size:
        raise InterruptedTransfer(f"the connection ended after {size:,} of {version.size:,} bytes")


def _refuse_size(url: str, limit: int) -> DownloadFailed:
    message = f"the server sends more than {limit:,} bytes, the limit of this file"
    return DownloadFailed(message, where=url, remedy=SITE_REMEDY)


ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


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
        most_mb: Maximum size of a file in MB; 0 for the maximum of every file.
    """

    name: str
    licence: str
    citation: str
    files: tuple[str, ...]
    base: str = ""
    digest: str | Mapping[str, str] = ""
    inner: str = ""
    folder: str = ""
    holds: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    manual: str = ""
    most_mb: int = 0

    @property
    def max_bytes(self) -> int:
        """The maximum size of a file."""
        return self.most_mb * 10**6 or MAX_BYTES

    @property
    def is_archive(self) -> bool:
        """Whether the dataset is published as one archive."""
        return bool(self.files) and self.files[0].endswith(ARCHIVES)

    def terms(self) -> str:
        """Return the licence and the citation, as printed before a download."""
        return f"{self.licence}\nPlease cite: {self.citation}"

    def list_missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks, with or without ``.gz``."""
        return [
            name
            for name in self.holds
            if not any((folder / file).is_file() for file in (name, f"{name}.gz"))
        ]


def read_sources(path: Path | None = None) -> dict[str, Source]:
    """Read the sources of all datasets, by name; by default from the file in the package."""
    import yaml

    file = path or files("recbias.data").joinpath("sources.yaml")
    content: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    sources = {}
    for name, entry in content["datasets"].items():
        texts = {key: tuple(entry[key]) for key in ("files", "holds") if key in entry}
        defaults = {"name": name, "folder": name, "holds": texts["files"]}
        terms = content["terms"][entry.pop("terms")]
        sources[name] = Source(**(defaults | entry | texts | terms))
    return sources


def find_source(name: str, sources: Path | None = None) -> Source:
    """Return the source of a dataset, ignoring case and separators in the name.

    Raises:
        UnknownName: There is no such dataset.
    """
    known = read_sources(sources)
    by_normalized = {normalize_name(source_name): source for source_name, source in known.items()}
    if source := by_normalized.get(normalize_name(name)):
        return source
    raise UnknownName(f"no dataset is called {name!r}", remedy=suggest(name, known))


def fetch(
    name: str,
    data: Path,
    *,
    sources: Path | None = None,
    progress: ProgressListener = report_progress,
    policy: RetryPolicy | None = None,
) -> Path:
    """Download a dataset and return its folder; does nothing if the folder is complete.

    An interrupted download is kept in ``<data>/.fetching`` and resumed. The dataset is moved to
    its folder only when it is complete and its checksum is the published one.

    Args:
        name: The published name.
        data: The folder of datasets; it is created if it does not exist.
        sources: A file of sources; by default the one in the package.
        progress: Receives the number of downloaded bytes and the size.
        policy: When a transfer is retried.

    Raises:
        UnknownName: There is no such dataset.
        DownloadFailed: The server does not have the dataset or sends an invalid one, or the
            publisher requires consent to its terms.
        DigestMismatch: The checksum of a file is not the published one.
        Unwritable: The data folder cannot be written.
    """
    source = find_source(name, sources)
    folder = find_folder(source.folder, data, holds=source.holds[0], inner=source.inner)
    missing = source.list_missing(folder)
    if not missing:
        return folder
    _refuse(source, folder, missing)
    with wrap_write_errors(data), _lock(data / ".fetching" / source.name) as work:
        names = source.files if source.is_archive else source.list_missing(folder)
        paths = [_download(file, source, work, progress, policy) for file in names]
        if source.is_archive:
            _install_archive(paths[0], folder, source)
        else:
            folder.mkdir(exist_ok=True)
            for path in paths:
                path.replace(folder / path.name)
        shutil.rmtree(work)
    with suppress(OSError):  # another dataset may be in the same folder
        work.parent.rmdir()
    return folder


def _refuse(source: Source, folder: Path, missing: list[str]) -> None:
    """Refuse to download what requires consent, or to unpack over other files."""
    if source.manual:
        message = f"{source.name} cannot be downloaded automatically. {source.manual}"
        remedy = f"put {' and '.join(source.holds)} (also with .gz) into {folder}"
        raise DownloadFailed(message, remedy=remedy)
    if source.is_archive and folder.is_dir() and any(folder.iterdir()):
        message = f"exists, but lacks {', '.join(missing)}"
        raise Unwritable(message, where=str(folder), remedy="move it away, then fetch again")


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


def _download(
    name: str, source: Source, work: Path, progress: ProgressListener, policy: RetryPolicy | None
) -> Path:
    """Download a file and verify its checksum; a file with a wrong checksum is removed."""
    target, url = work / name, source.base + name
    algorithm, published = _find_checksum(name, source, policy)
    if not target.is_file():
        transfer(url, target, progress=progress, policy=policy, max_bytes=source.max_bytes)
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


def _find_checksum(name: str, source: Source, policy: RetryPolicy | None) -> tuple[str, str]:
    """Return the algorithm and the published checksum of a file; empty if there is none."""
    if isinstance(source.digest, Mapping):
        return ("sha256", source.digest[name].lower()) if name in source.digest else ("", "")
    if not source.digest:
        return "", ""
    url = f"{source.base}{name}.md5"
    checksum = re.search(r"\b[0-9a-fA-F]{32}\b", fetch_text(url, policy=policy))
    if not checksum:
        raise DownloadFailed("contains no md5", where=url, remedy="see the publisher's site")
    return "md5", checksum[0].lower()


def _install_archive(archive: Path, folder: Path, source: Source) -> None:
    """Unpack an archive next to the folder, then move it there in one step."""
    unpacked = archive.with_name("unpacked")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    try:
        _unpack(archive, unpacked, source).rename(folder)
    except (DownloadFailed, OSError) as error:
        shutil.rmtree(unpacked)
        if isinstance(error, DownloadFailed):
            archive.unlink()
        raise


def _unpack(archive: Path, folder: Path, source: Source) -> Path:
    unpack(archive, folder)
    inner = find_inner_folder(folder, source.inner)
    if missing := source.list_missing(inner):
        message = f"the archive lacks {', '.join(missing)}"
        raise DownloadFailed(message, where=source.base + archive.name)
    return inner
