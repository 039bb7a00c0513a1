"""Local web servers: one that serves files with typical failures, one that serves raw bytes."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.loopback import answer_in_thread


@dataclass
class Publisher:
    """A server of files, and its failures.

    Args:
        files: The content of each file, by name.
        ranges: Whether it supports range requests.
        named: Whether it sends an ETag or a Last-Modified date.
        cuts: The bytes of the body that it sends before it closes the connection, for each
            request; later requests get all.
        answers: The status codes of the first requests.
        requests: The name and the ``Range`` of every request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    named: str = "modified"
    cuts: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    base: str = ""

    @contextmanager
    def serve(self) -> Iterator[Publisher]:
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{server.server_address[1]}/"
        with answer_in_thread(server):
            yield self

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        name, byte_range = request.path.lstrip("/"), request.headers.get("Range", "")
        self.requests.append((name, byte_range))
        if self.answers:
            request.send_error(self.answers.pop(0))
        elif name not in self.files:
            request.send_error(404)
        else:
            self.send_content(request, self.files[name], byte_range)

    def send_content(
        self, request: BaseHTTPRequestHandler, content: bytes, byte_range: str
    ) -> None:
        validators = self.make_validators(content)
        same = request.headers.get("If-Range") in {None, *validators.values()}
        start = int(re.sub(r"\D", "", byte_range)) if byte_range and self.ranges and same else 0
        if start and start >= len(content):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        for header, value in validators.items():
            request.send_header(header, value)
        if start:
            end = len(content) - 1
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(content)}")
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        body = content[start:]
        request.wfile.write(body[: self.cuts.pop(0)] if self.cuts else body)

    def make_validators(self, content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()[:8]
        if self.named == "etag":
            return {"ETag": f'"{digest}"'}
        return {"Last-Modified": f"Sat, 21 Nov 2026 10:{int(digest[:2], 16) % 60:02d}:00 GMT"}


@contextmanager
def serve_bytes(answer: Callable[[bytes], Iterable[bytes]]) -> Iterator[str]:
    """Serve raw bytes until the client closes the connection; yield the address of the server.

    Args:
        answer: Returns the pieces of a response with its headers; may be infinite.
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
