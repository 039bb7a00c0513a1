"""Web servers on this machine: a publisher's with ranges that fails as they do; a hostile one."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from typing import Any


@dataclass
class Publisher:
    """What the server has, and how it misbehaves.

    Args:
        files: The content of each file, by name.
        ranges: Whether it gives parts of files.
        named: Whether it sends an ETag, a Last-Modified date, or neither.
        cuts: How many bytes of the body it sends before it hangs up, one a request; then all.
        answers: Status codes it answers with first, one a request.
        moved: Names it redirects to another address.
        sized: Whether it says how long a file is.
        requests: The name and the ``Range`` of every request that came.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    named: str = "etag"
    cuts: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    sized: bool = True
    requests: list[tuple[str, str]] = field(default_factory=list)
    base: str = ""

    @contextmanager
    def serving(self) -> Iterator[Publisher]:
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name, wanted = request.path.lstrip("/"), request.headers.get("Range", "")
        self.requests.append((name, wanted))
        if self.answers:
            request.send_error(self.answers.pop(0))
        elif name in self.moved:
            request.send_response(302)
            request.send_header("Location", self.moved[name])
            request.end_headers()
        elif name not in self.files:
            request.send_error(404)
        else:
            self.give(request, self.files[name], wanted)

    def give(self, request: BaseHTTPRequestHandler, content: bytes, wanted: str) -> None:
        names = self.names(content)
        same = request.headers.get("If-Range") in {None, *names.values()}
        start = int(re.sub(r"\D", "", wanted)) if wanted and self.ranges and same else 0
        if start and start >= len(content):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        for header, value in names.items():
            request.send_header(header, value)
        if start:
            end = len(content) - 1
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        if self.sized:
            request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        body = content[start:]
        request.wfile.write(body[: self.cuts.pop(0)] if self.cuts else body)

    def names(self, content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()[:8]
        if self.named == "etag":
            return {"ETag": f'"{digest}"'}
        if self.named == "modified":
            return {"Last-Modified": f"Sat, 21 Nov 2026 10:{int(digest[:2], 16) % 60:02d}:00 GMT"}
        return {}


@contextmanager
def hostile(answer: Callable[[bytes], Iterable[bytes]]) -> Iterator[str]:
    """Serve raw bytes until the client hangs up; yield the address of the folder.

    Args:
        answer: The pieces of an answer to a request, headers and all; may be without end.
    """
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        while not ended.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            with client, suppress(OSError):
                for piece in answer(client.recv(65536)):
                    if ended.is_set():
                        break
                    client.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.02)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            ended.set()
            thread.join()


def endless(head: bytes, piece: bytes) -> Iterator[bytes]:
    """Yield a head and then the same piece for ever."""
    return chain([head], repeat(piece))
