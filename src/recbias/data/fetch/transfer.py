"""One file over HTTP: continued where it was cut off, tried again where the network fails.

A server is not trusted: what it sends may be as long as it said, or as a ceiling where it says
nothing, and has to come at a least rate.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from recbias.core.errors import DownloadFailed, Unwritable
from recbias.core.stage_context import ProgressListener, report_progress

CHUNK = 2**18
SMALL = 2**16
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another a moment later."""

MOST_BYTES = 20 * 2**30
"""No file is longer than this, unless its source declares another ceiling."""

REMEDY = "try again later: what was fetched is kept; or fetch it by hand"


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a transfer goes on.

    Args:
        attempts: How many tries in a row may bring nothing more.
        seconds: The pause after the first of them; each pause is twice the one before.
        timeout_s: How long a server may say nothing.
        window_s: In every so many seconds, at least ``least_bytes`` of the file have to come.
        least_bytes: How many; a try that brings fewer has brought nothing.
    """

    attempts: int = 4
    seconds: float = 1.0
    timeout_s: float = 60.0
    window_s: float = 60.0
    least_bytes: int = 2**16


@dataclass(frozen=True)
class Part:
    """What is known of a file of which a part is here.

    Args:
        url: Where it comes from.
        size: Its bytes in all; -1 where the server does not say.
        etag: The server's name for this version of it; blank where it has none.
        modified: When it was changed, in the server's words.
    """

    url: str
    size: int = -1
    etag: str = ""
    modified: str = ""


class _Again(Exception):
    """The transfer was cut off and may be continued."""


class _Stale(_Again):
    """What is here belongs to another version of the file: it is fetched from the start."""


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn the system's refusal to write into an error that says where.

    Raises:
        Unwritable: The disk is full, or the folder is read-only or is none.
    """
    try:
        yield
    except OSError as error:
        remedy = "free some space, or give --data another folder"
        found = f"cannot be written: {error.strerror or error}"
        raise Unwritable(found, where=str(error.filename or folder), remedy=remedy) from error


def transfer(
    url: str,
    target: Path,
    *,
    progress: ProgressListener = report_progress,
    patience: Patience | None = None,
    most_bytes: int = MOST_BYTES,
) -> Path:
    """Fetch a file; ``<target>.part`` beside it is what an earlier try has fetched already.

    Args:
        url: Where the file is, ``http`` or ``https``.
        target: Where it goes; its folder is there.
        progress: Is told how many bytes of how many have come.
        patience: How often it is tried.
        most_bytes: How long it may be, whatever the server says.

    Raises:
        DownloadFailed: The server does not have it, its answer makes no sense or is longer than
            it may be, or the network failed too often.
        Unwritable: It cannot be written.
    """
    patience = patience or Patience()
    part = target.with_name(f"{target.name}.part")
    failures, most, trouble = 0, 0, ""
    while failures < patience.attempts:
        _wait(failures, patience)
        with writing(target.parent):
            try:
                _continue(url, part, progress, patience, most_bytes)
            except _Again as again:
                if isinstance(again, _Stale):
                    part.unlink(missing_ok=True)
                trouble, have = str(again), _size(part)
                brought = have - most >= patience.least_bytes
                failures, most = 1 if brought else failures + 1, max(most, have)
            else:
                part.replace(target)
                _about(part).unlink(missing_ok=True)
                return target
    found = f"not fetched, {failures} tries brought little or nothing more: {trouble}"
    raise DownloadFailed(found, where=url, remedy=REMEDY)


def small_text(url: str, *, patience: Patience | None = None) -> str:
    """Return a small text file: the first 64 kB.

    Raises:
        DownloadFailed: It is not there, or the network failed too often.
    """
    patience = patience or Patience()
    trouble = ""
    for failures in range(patience.attempts):
        _wait(failures, patience)
        try:
            with _asked(url, {}, patience) as answer:
                return _whole(answer).decode("utf-8", "replace")
        except _Again as error:
            trouble = str(error)
    raise DownloadFailed(f"not fetched: {trouble}", where=url, remedy=REMEDY)


def _whole(answer: Any) -> bytes:
    expected = min(max(_content_length(answer.url, answer.headers), 0), SMALL)
    text = b""
    while len(text) < SMALL and (piece := _receive_piece(answer, SMALL - len(text))):
        text += piece
    if len(text) < expected:
        raise _Again("the connection ended early")
    return text


def _wait(failures: int, patience: Patience) -> None:
    if failures:
        time.sleep(patience.seconds * 2 ** (failures - 1))


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _about(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _known(part: Path, url: str) -> tuple[Part, int]:
    """Return what is known of a part and how many bytes of it are here."""
    try:
        known = Part(**json.loads(_about(part).read_text(encoding="utf-8")))
        have = part.stat().st_size
    except (FileNotFoundError, ValueError, TypeError):
        return Part(url), 0
    return (known, have) if known.url == url else (Part(url), 0)


def _continue(
    url: str, part: Path, progress: ProgressListener, patience: Patience, most_bytes: int
) -> None:
    known, have = _known(part, url)
    if have and have == known.size:
        return
    headers = {}
    if have:
        headers = {"Range": f"bytes={have}-"}
        if known.etag or known.modified:
            headers["If-Range"] = known.etag or known.modified
    with _asked(url, headers, patience) as answer:
        if answer.status == HTTPStatus.PARTIAL_CONTENT:
            if not _continues(answer.headers, known, have):
                raise _Stale("the file has changed at the publisher's")
            about = known
        else:
            have, about = 0, _described(url, answer.headers)
        if about.size > most_bytes:
            raise _refuse_longer(url, most_bytes)
        if not have:
            _about(part).write_text(json.dumps(asdict(about)), encoding="utf-8")
        with part.open("ab" if have else "wb") as out:
            _receive(answer, out, have, about, progress, most_bytes)


def _described(url: str, headers: Mapping[str, str]) -> Part:
    size = _content_length(url, headers)
    etag = headers.get("ETag") or ""
    strong = "" if etag.startswith("W/") else etag
    return Part(url, size, strong, headers.get("Last-Modified") or "")


def _content_length(url: str, headers: Mapping[str, str]) -> int:
    """Return how many bytes an answer says it has; -1 where it does not say.

    Raises:
        DownloadFailed: It says something that is no number of bytes.
    """
    said = (headers.get("Content-Length") or "").strip()
    if said and not re.fullmatch("[0-9]{1,18}", said):
        found = f"the server's Content-Length is no number of bytes: {said!r}"
        raise DownloadFailed(found, where=url, remedy=REMEDY)
    return int(said) if said else -1


def _continues(headers: Mapping[str, str], known: Part, have: int) -> bool:
    """Return whether an answer is the rest of the very file of which a part is here."""
    found = re.fullmatch(
        "bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})", headers.get("Content-Range") or ""
    )
    if not found or int(found[1]) != have:
        return False
    now = _described(known.url, headers)
    return int(found[2]) == known.size and (not known.etag or now.etag in {"", known.etag})


def _receive(
    answer: Any,
    out: IO[bytes],
    have: int,
    about: Part,
    progress: ProgressListener,
    most_bytes: int,
) -> None:
    """Append a body to a file; of a body that is too long nothing is kept.

    Raises:
        DownloadFailed: It is longer than the server said, or than it may be.
    """
    name = Path(urllib.parse.urlsplit(about.url).path).name
    before, most = have, about.size if about.size >= 0 else most_bytes
    while piece := _receive_piece(answer, CHUNK):
        have += len(piece)
        if have > most:
            out.truncate(before)
            raise _refuse_longer(about.url, most)
        out.write(piece)
        progress(f"fetch {name}", have, max(about.size, have))
    out.flush()
    os.fsync(out.fileno())
    if about.size >= 0 and have != about.size:
        raise _Again(f"the connection ended after {have:,} of {about.size:,} bytes")


def _refuse_longer(url: str, most: int) -> DownloadFailed:
    found = f"the server sends more than {most:,} bytes, which is all that this file may have"
    return DownloadFailed(found, where=url, remedy="see the publisher's site")


def _receive_piece(answer: Any, most: int) -> bytes:
    """Return what has come of a body, at most so many bytes; nothing at its end."""
    try:
        piece = bytes(answer.read1(most))
    except (OSError, http.client.HTTPException) as error:
        raise _Again(f"the connection broke: {error}") from error
    if answer.chunked and (answer.chunk_left or 0) < 0:
        found = "the server sends a chunk of a negative size"
        raise DownloadFailed(found, where=answer.url, remedy="see the publisher's site")
    answer.pace.count(len(piece))
    return piece


@contextmanager
def _asked(url: str, headers: dict[str, str], patience: Patience) -> Iterator[Any]:
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise DownloadFailed("is not a web address", where=url)
    ours = {"User-Agent": "recbias", "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=ours)  # noqa: S310  the scheme is checked
    pace = _Pace(patience)
    opener = urllib.request.build_opener(_StaysSecure, _PacedHandler(pace))
    try:
        answer = opener.open(request, timeout=patience.timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in AGAIN:
            raise _Again(f"the server says {error.code} {error.reason}") from error
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and "Range" in headers:
            raise _Stale("the file has changed at the publisher's") from error
        found = f"the server says {error.code} {error.reason}"
        raise DownloadFailed(found, where=url, remedy="see the publisher's site") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Again(f"no answer: {error}") from error
    except ValueError as error:  # a redirect to what is no address
        found = f"the server's answer makes no sense: {error}"
        raise DownloadFailed(found, where=url, remedy="see the publisher's site") from error
    pace.start_window()
    with answer:
        yield answer


class _StaysSecure(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to anything else."""

    def redirect_request(self, req: Any, *rest: Any) -> Any:
        new_url = str(rest[-1])
        if req.full_url.startswith("https:") and not new_url.startswith("https:"):
            raise DownloadFailed(f"leads to {new_url}, which is not https", where=req.full_url)
        return super().redirect_request(req, *rest)


class _Pace:
    """Whether enough of a body comes, in every window of time.

    Args:
        patience: How long a window is, and how many bytes have to come in it.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.start_window()

    def start_window(self) -> None:
        """Begin a window."""
        self._since, self._received = time.monotonic(), 0

    def count(self, size: int) -> None:
        """Take note of bytes of the body."""
        self._received += size

    def check(self) -> None:
        """Begin the next window where this one is over.

        Raises:
            TimeoutError: Too little came in it.
        """
        elapsed = time.monotonic() - self._since
        if elapsed < self._patience.window_s:
            return
        if self._received < self._patience.least_bytes:
            raise TimeoutError(f"only {self._received:,} bytes came in {elapsed:.0f} s")
        self.start_window()


class _PacedStream(io.RawIOBase):
    """What a server sends, as long as enough of a body comes: headers and sizes of chunks too."""

    def __init__(self, raw: io.RawIOBase, pace: _Pace) -> None:
        super().__init__()
        self._raw, self._pace = raw, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._pace.check()
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _PacedResponse(http.client.HTTPResponse):
    """An answer that has to come at a least rate."""

    def __init__(self, *settings: Any, pace: _Pace, **named: Any) -> None:
        super().__init__(*settings, **named)
        self.pace = pace
        self.fp = io.BufferedReader(_PacedStream(self.fp.detach(), pace))


class _PacedHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections whose answers have to come at a least rate."""

    def __init__(self, pace: _Pace) -> None:
        super().__init__()
        self._pace = pace

    def http_open(self, req: Any) -> Any:
        return self.do_open(partial(self._connect, http.client.HTTPConnection), req)

    def https_open(self, req: Any) -> Any:
        return self.do_open(partial(self._connect, http.client.HTTPSConnection), req)

    def _connect(self, kind: Any, host: str, **settings: Any) -> Any:
        connection = kind(host, **settings)
        connection.response_class = partial(_PacedResponse, pace=self._pace)
        return connection
