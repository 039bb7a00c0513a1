"""Download of datasets from their publishers, with checksums and in one atomic step.

An interrupted transfer is resumed where the server allows it, and retried after failures. The
unpacked size of an archive is limited.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import shutil
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, get_args

from recbias.core.context import ProgressListener, report_progress
from recbias.core.errors import DigestMismatch, DownloadFailed, UnknownName, Unwritable
from recbias.core.machine import lock_file, write_to_disk
from recbias.core.text import normalize_name, suggest
from recbias.data import declared
from recbias.data.declared import find_folder, list_declared, read_declaration

_PIECE_BYTES = 2**18
_MAX_BYTES = 20 * 2**30
"""The maximum size of a file, unless its source declares another."""

_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})  # a retry may succeed
_PROGRESS_BYTES = 2**16  # an attempt that receives less counts as a failure
_RETRY_REMEDY = "try again later, which resumes the download; or download the file by hand"
_SITE_REMEDY = "see the publisher's site"
_ARCHIVE_REMEDY = "the archive differs from the published one; no file of it was kept"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a transfer is retried and when it is given up.

    Args:
        attempts: Number of consecutive attempts without progress before the transfer fails.
        pause_s: Pause after the first of them; it doubles with every further attempt.
        timeout_s: Longest silence of a server.
    """

    attempts: int = 4
    pause_s: float = 1.0
    timeout_s: float = 60.0


class RefusedRequest(DownloadFailed):
    """The server answers with an error that no retry changes; ``status`` is its code."""

    status = 0


class _Interrupted(Exception):
    """The transfer was interrupted and may be resumed."""


class _Changed(_Interrupted):
    """The partial file is of another version: the transfer starts again."""


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
    max_bytes: int = _MAX_BYTES,
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

    def resume() -> None:
        try:
            _resume(url, part, progress, policy, max_bytes)
        except _Changed:
            part.unlink(missing_ok=True)
            raise

    with wrap_write_errors(target.parent):
        _retry(resume, url, policy, lambda: part.stat().st_size if part.exists() else 0)
        part.replace(target)
        _get_version_path(part).unlink(missing_ok=True)
    return target


def fetch_text(
    url: str,
    *,
    policy: RetryPolicy | None = None,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = 2**16,
) -> str:
    """Return a small text file: at most its first ``max_bytes``.

    Raises:
        DownloadFailed: The server does not have the file, or the network failed too often.
    """
    policy = policy or RetryPolicy()

    def read() -> str:
        with _open_url(url, headers or {}, policy) as response:
            announced, text = response.length or 0, b""
            for piece in _read_pieces(response):
                text += piece
                if len(text) >= max_bytes:
                    break
        if len(text) < min(announced, max_bytes):
            raise _Interrupted("the connection ended early")
        return text[:max_bytes].decode("utf-8", "replace")

    return _retry(read, url, policy, lambda: 0)


def _retry(
    attempt: Callable[[], T], url: str, policy: RetryPolicy, measure: Callable[[], int]
) -> T:
    """Return what an attempt returns; DownloadFailed after too many without progress in bytes."""
    failures, largest = 0, 0
    while True:
        try:
            return attempt()
        except _Interrupted as error:
            size = measure()
            failures = 1 if size - largest >= _PROGRESS_BYTES else failures + 1
            largest = max(largest, size)
            if failures >= policy.attempts:
                message = f"download failed after {failures} attempts with little or no progress"
                message = f"{message}: {error}"
                raise DownloadFailed(message, where=url, remedy=_RETRY_REMEDY) from error
        time.sleep(policy.pause_s * 2 ** (failures - 1))


@contextmanager
def _open_url(url: str, headers: Mapping[str, str], policy: RetryPolicy) -> Iterator[Any]:
    if not url.startswith(("http://", "https://")):
        raise DownloadFailed("is not a web address", where=url)
    headers = {"User-Agent": "recbias", "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme is checked
    try:
        opener = urllib.request.build_opener(_SecureRedirects)
        response = opener.open(request, timeout=policy.timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        message = f"the server answers {error.code} {error.reason}"
        if error.code in _TRANSIENT:
            raise _Interrupted(message) from error
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and "Range" in headers:
            raise _Changed(message) from error
        refused = RefusedRequest(message, where=url, remedy=_SITE_REMEDY)
        refused.status = error.code
        raise refused from error
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(f"no answer: {error}") from error
    except ValueError as error:  # a redirect to an invalid address
        message = f"the server's answer is invalid: {error}"
        raise DownloadFailed(message, where=url, remedy=_SITE_REMEDY) from error
    with response:
        yield response


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects to schemes other than http, and from https to http."""

    def redirect_request(self, req: Any, *arguments: Any) -> Any:
        new_url, is_secure = str(arguments[-1]), req.full_url.startswith("https:")
        if not new_url.startswith("https:" if is_secure else ("http:", "https:")):
            message = f"leads to {new_url}, which is not {'https' if is_secure else 'http'}"
            raise DownloadFailed(message, where=req.full_url)
        return super().redirect_request(req, *arguments)


def _read_pieces(response: Any) -> Iterator[bytes]:
    try:
        while piece := response.read1(_PIECE_BYTES):
            yield piece
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Interrupted(f"the connection broke: {error}") from error


def _get_version_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _read_version(part: Path, url: str) -> str:
    """Return the ETag or date of a partial file of this address; empty if it is unknown."""
    with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
        version = json.loads(_get_version_path(part).read_text(encoding="utf-8"))
        if version["url"] == url and part.exists():
            return str(version["version"])
    return ""


def _resume(
    url: str, part: Path, progress: ProgressListener, policy: RetryPolicy, max_bytes: int
) -> None:
    """Download the rest of a file; all of it where the server cannot say that it is the same."""
    version = _read_version(part, url)
    size = part.stat().st_size if version else 0
    headers = {"Range": f"bytes={size}-", "If-Range": version} if size else {}
    with _open_url(url, headers, policy) as response:
        if response.status == HTTPStatus.PARTIAL_CONTENT:
            given = response.headers.get("Content-Range") or ""
            if not given.startswith(f"bytes {size}-"):
                raise _Changed("the server sends another part of the file")
        else:
            etag, size = response.headers.get("ETag") or "", 0
            version = "" if etag.startswith("W/") else etag
            version = version or response.headers.get("Last-Modified") or ""
        _write_body(response, part, size, {"url": url, "version": version}, progress, max_bytes)


def _write_body(
    response: Any,
    part: Path,
    size: int,
    version: Mapping[str, str],
    progress: ProgressListener,
    max_bytes: int,
) -> None:
    """Append a body to a partial file of a size; one that is too long is removed again."""
    url, start = version["url"], size
    name = PurePosixPath(url.partition("?")[0]).name
    end = -1 if response.length is None else size + response.length
    if end > max_bytes:
        raise _refuse_size(url, max_bytes)
    _get_version_path(part).write_text(json.dumps(version), encoding="utf-8")
    with part.open("ab" if size else "wb") as stream:
        for piece in _read_pieces(response):
            size += len(piece)
            if size > max_bytes:
                stream.truncate(start)
                raise _refuse_size(url, max_bytes)
            stream.write(piece)
            progress(f"fetch {name}", size, max(end, size))
        stream.flush()
        write_to_disk(stream.fileno())
    if size < end:
        raise _Interrupted(f"the connection ended after {size:,} of {end:,} bytes")


def _refuse_size(url: str, limit: int) -> DownloadFailed:
    message = f"the server sends more than {limit:,} bytes, the limit of this file"
    return DownloadFailed(message, where=url, remedy=_SITE_REMEDY)


def unpack(archive: Path, into: Path) -> None:
    """Unpack a zip archive, at most to 30 times its size and 100 MiB: text compresses to a sixth.

    Raises:
        DownloadFailed: The archive is damaged, packed in a way that is not read, or unpacks to too
            many bytes.
    """
    max_bytes = 30 * archive.stat().st_size + 100 * 2**20
    try:
        with zipfile.ZipFile(archive) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > max_bytes:
                message, remedy = f"unpacks to more than {max_bytes:,} bytes", _ARCHIVE_REMEDY
                raise DownloadFailed(message, where=str(archive), remedy=remedy)
            packed.extractall(into)
    except (EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, ValueError) as error:
        message = f"is damaged or truncated, or cannot be unpacked: {error}"
        raise DownloadFailed(message, where=str(archive), remedy="fetch it again") from error


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
        return self.most_mb * 10**6 or _MAX_BYTES

    @property
    def is_archive(self) -> bool:
        """Whether the dataset is published as one archive."""
        return len(self.files) == 1 and self.files[0].endswith(".zip")

    def terms(self) -> str:
        """Return the licence and the citation, as printed before a download."""
        return f"{self.licence}\nPlease cite: {self.citation}"

    def list_missing(self, folder: Path) -> list[str]:
        """Return the files that the folder lacks, with or without ``.gz``."""
        return [name for name in self.holds if not declared.find_packed(folder / name).is_file()]


def read_sources(path: Path | None = None) -> dict[str, Source]:
    """Read the sources of all datasets, by name; by default those in the package."""
    import yaml

    file = path or files("recbias.data").joinpath("sources.yaml")
    content: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    sources = {}
    for name, entry in content["datasets"].items():
        texts = {key: tuple(entry[key]) for key in ("files", "holds") if key in entry}
        defaults = {"name": name, "folder": name, "holds": texts["files"]}
        terms = content["terms"][entry.pop("terms")]
        sources[name] = Source(**(defaults | entry | texts | terms))
    return sources if path else sources | dict(_read_declared())


def _read_declared() -> Iterator[tuple[str, Source]]:
    """Yield the sources of the declared datasets: one for each choice of the settings ``each``."""
    for name in list_declared():
        entry, cls = read_declaration(name), getattr(declared, name)
        if "download" not in entry:  # its several downloads are in sources.yaml
            continue
        download = {
            key: tuple(x) if isinstance(x, list) else x for key, x in entry["download"].items()
        }
        each = download.pop("each", ())
        hints = {setting: get_args(cls.__annotations__[setting]) for setting in each}
        for chosen in product(*hints.values()):
            side = {"side": tuple(entry["sides"])} if "sides" in entry else {}
            dataset = cls(**dict(zip(each, chosen, strict=True)), **side)
            files = tuple(dataset.list_files())
            fields = {
                "files": () if "manual" in download else files,
                "holds": files,
                "folder": name,
            }
            fields |= {
                key: entry[key] for key in ("licence", "citation", "counts") if key in entry
            }
            yield dataset.fetch_name, Source(name=dataset.fetch_name, **(fields | download))


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
            for path in paths:
                target = folder / path.relative_to(work)
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
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
    target.parent.mkdir(parents=True, exist_ok=True)
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
        unpack(archive, unpacked)
        _find_inner_folder(unpacked, archive, source).rename(folder)
    except (DownloadFailed, OSError) as error:
        shutil.rmtree(unpacked)
        if isinstance(error, DownloadFailed):
            archive.unlink()
        raise


def _find_inner_folder(unpacked: Path, archive: Path, source: Source) -> Path:
    """Return the folder of an unpacked archive with the dataset: ``inner``, or the only one."""
    paths = [path for path in unpacked.iterdir() if path.name != "__MACOSX"]
    folder = paths[0] if len(paths) == 1 and paths[0].is_dir() else unpacked
    if source.inner and (unpacked / source.inner).is_dir():
        folder = unpacked / source.inner
    if missing := source.list_missing(folder):
        message = f"the archive lacks {', '.join(missing)}"
        raise DownloadFailed(message, where=source.base + archive.name)
    return folder
