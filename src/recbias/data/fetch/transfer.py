"""Download of one file over HTTP, resumed after interruptions and retried after failures."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from recbias.core.errors import DownloadFailed, Unwritable
from recbias.core.machine.operating_system import write_to_disk
from recbias.core.stage_context import ProgressListener, report_progress
from recbias.data.fetch.connection import (
    RETRY_REMEDY,
    SITE_REMEDY,
    FileChanged,
    InterruptedTransfer,
    open_url,
    parse_content_length,
    read_piece,
)
from recbias.data.fetch.retry_policy import RetryPolicy

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
