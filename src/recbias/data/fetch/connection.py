"""HTTP connections to untrusted servers: a minimum rate, a maximum size, no downgrade."""

from __future__ import annotations

import http.client
import io
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from recbias.core.errors import DownloadFailed
from recbias.data.fetch.retry_policy import TRANSIENT, RetryPolicy

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
