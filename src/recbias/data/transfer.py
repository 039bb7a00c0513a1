"""One file over HTTP: continued where it was cut off, tried again where the network fails."""

from __future__ import annotations

import http.client
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
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any

from recbias.core.errors import DownloadFailed, Unwritable
from recbias.core.progress import Listener, report

CHUNK = 2**18
SMALL = 2**16
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server that may be another a moment later."""

REMEDY = "try again later: what was fetched is kept; or fetch it by hand"


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a transfer goes on.

    Args:
        attempts: How many tries in a row may bring nothing more.
        seconds: The pause after the first of them; each pause is twice the one before.
        timeout_s: How long a server may say nothing.
    """

    attempts: int = 4
    seconds: float = 1.0
    timeout_s: float = 60.0


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
    progress: Listener = report,
    patience: Patience | None = None,
) -> Path:
    """Fetch a file; ``<target>.part`` beside it is what an earlier try has fetched already.

    Args:
        url: Where the file is, ``http`` or ``https``.
        target: Where it goes; its folder is there.
        progress: Is told how many bytes of how many have come.
        patience: How often it is tried.

    Raises:
        DownloadFailed: The server does not have it, or the network failed too often.
        Unwritable: It cannot be written.
    """
    patience = patience or Patience()
    part = target.with_name(f"{target.name}.part")
    failures, most, trouble = 0, 0, ""
    while failures < patience.attempts:
        _wait(failures, patience)
        with writing(target.parent):
            try:
                _continue(url, part, progress, patience)
            except _Again as again:
                if isinstance(again, _Stale):
                    part.unlink(missing_ok=True)
                trouble, have = str(again), _size(part)
                failures, most = 1 if have > most else failures + 1, max(most, have)
            else:
                part.replace(target)
                _about(part).unlink(missing_ok=True)
                return target
    found = f"not fetched, {failures} tries brought nothing more: {trouble}"
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
    try:
        text = bytes(answer.read(SMALL))
    except (OSError, http.client.HTTPException) as error:
        raise _Again(f"the connection broke: {error}") from error
    if len(text) < min(int(answer.headers.get("Content-Length") or 0), SMALL):
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


def _continue(url: str, part: Path, progress: Listener, patience: Patience) -> None:
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
            _about(part).write_text(json.dumps(asdict(about)), encoding="utf-8")
        with part.open("ab" if have else "wb") as out:
            _receive(answer, out, have, about, progress)


def _described(url: str, headers: Mapping[str, str]) -> Part:
    size = int(headers.get("Content-Length") or -1)
    etag = headers.get("ETag") or ""
    strong = "" if etag.startswith("W/") else etag
    return Part(url, size, strong, headers.get("Last-Modified") or "")


def _continues(headers: Mapping[str, str], known: Part, have: int) -> bool:
    """Return whether an answer is the rest of the very file of which a part is here."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range") or "")
    if not found or int(found[1]) != have:
        return False
    now = _described(known.url, headers)
    return int(found[2]) == known.size and (not known.etag or now.etag in {"", known.etag})


def _receive(answer: Any, out: IO[bytes], have: int, about: Part, progress: Listener) -> None:
    name = Path(urllib.parse.urlsplit(about.url).path).name
    while True:
        try:
            chunk = answer.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise _Again(f"the connection broke: {error}") from error
        if not chunk:
            break
        out.write(chunk)
        have += len(chunk)
        progress(f"fetch {name}", have, max(about.size, have))
    out.flush()
    os.fsync(out.fileno())
    if about.size >= 0 and have != about.size:
        raise _Again(f"the connection ended after {have:,} of {about.size:,} bytes")


@contextmanager
def _asked(url: str, headers: dict[str, str], patience: Patience) -> Iterator[Any]:
    if urllib.parse.urlsplit(url).scheme not in {"http", "https"}:
        raise DownloadFailed("is not a web address", where=url)
    ours = {"User-Agent": "recbias", "Accept-Encoding": "identity", **headers}
    request = urllib.request.Request(url, headers=ours)  # noqa: S310  the scheme is checked
    try:
        answer = urllib.request.build_opener(_StaysSecure).open(
            request, timeout=patience.timeout_s
        )
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
    with answer:
        yield answer


class _StaysSecure(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from https to anything else."""

    def redirect_request(self, req: Any, *rest: Any) -> Any:
        new_url = str(rest[-1])
        if req.full_url.startswith("https:") and not new_url.startswith("https:"):
            raise DownloadFailed(f"leads to {new_url}, which is not https", where=req.full_url)
        return super().redirect_request(req, *rest)
