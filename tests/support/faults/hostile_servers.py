"""Responses of servers that break HTTP, made of seeded parts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, repeat

STATUS_LINES = (
    b"HTTP/1.1 200 OK",
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 206 Partial Content",
    b"HTTP/1.1 204 No Content",
    b"HTTP/1.1 304 Not Modified",
    b"HTTP/1.1 301 Moved",
    b"HTTP/1.1 404 \x1b[31mgone\x07",
    b"HTTP/1.1 416 Range",
    b"HTTP/1.1 429 Wait",
    b"HTTP/1.1 503 Busy",
    b"HTTP/1.1 999 \xff\xfe",
    b"HTTP/1.1 -1 OK",
    b"HTTP/9.9 200 OK",
    b"ICY 200 OK",
    b"",
    b"\x00" * 100,
    b"HTTP/1.1 200 " + b"x" * 70_000,
)
LENGTHS = (
    b"",
    b"Content-Length: 0",
    b"Content-Length: 5",
    b"Content-Length: 100000000000000",
    b"Content-Length: -1",
    b"Content-Length: abc",
    b"Content-Length: 1e3",
    b"Content-Length: 99999999999999999999999",
    b"Content-Length: 5\r\nContent-Length: 3000",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked",
)
HEADERS = (
    b"",
    b"ETag: \x1b[2J",
    b'ETag: "a"\r\nETag: "b"',
    b"Last-Modified: never",
    b"Content-Range: bytes 0-4/5",
    b"Content-Range: bytes 5-4/*",
    b"Content-Range: bytes 99999999999999999999-1/2",
    b"Content-Encoding: gzip",
    b"Location: http://127.0.0.1:1/",
    b"Location: file:///etc/passwd",
    b"Location: /again",
    b"Location: http://[bad",
    b"Location: \xff\r\n\r\n",
    b"Retry-After: 99999999",
    b"no colon",
    b"A: b\r\n" * 200 + b"A: b",
    b"B: " + b"y" * 70_000,
)
BODIES = (
    b"",
    b"12345",
    b"5\r\n12345\r\n0\r\n\r\n",
    b"5\r\n12",
    b"-5\r\n12345\r\n",
    b"ffffffffffffffffff\r\n12345",
    b"zz\r\n12345\r\n0\r\n\r\n",
    b"1\r\n1\r\n" * 500,
    b"\x1f\x8b" + b"\x00" * 50,
)
MAX_PIECES = 20_000
"""Pieces of a kilobyte of a body that does not end."""


@dataclass(frozen=True)
class HostileResponse:
    """What a server sends to every request.

    Args:
        parts: Status line, headers, and the body.
        is_endless: Whether pieces follow until the client closes the connection.
    """

    parts: Sequence[bytes]
    is_endless: bool

    def send(self, _request: bytes) -> Iterable[bytes]:
        """Yield the bytes of the response."""
        yield from self.parts
        if self.is_endless:
            yield from islice(repeat(b"x" * 1024), MAX_PIECES)


def make_hostile_response(rng: random.Random) -> HostileResponse:
    """Return a response that is invalid in most cases."""
    head = [rng.choice(STATUS_LINES), rng.choice(LENGTHS), rng.choice(HEADERS)]
    text = b"\r\n".join(line for line in head if line)
    body = rng.choice(BODIES)
    end = rng.choice([b"\r\n\r\n", b"\n\n", b"\r\n\r\n", b""])
    return HostileResponse([text + end, body], rng.random() < 0.2)
