"""A scripted server of a chat model on loopback, in the formats of OpenAI and Anthropic."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.loopback import answer_in_thread


@dataclass(frozen=True)
class Answer:
    """What the server sends.

    Args:
        body: The JSON, or raw bytes.
        status: The status code.
        headers: Further headers.
        seconds: How long the server waits before it answers.
        cut: The number of bytes after which it closes the connection; None sends all.
    """

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: int | None = None

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


Script = Callable[[dict[str, Any]], Answer | str]
"""Answers the JSON of a request, with a text for an ordinary reply."""


def answer_done(payload: dict[str, Any]) -> str:
    return "1. Alien (1979)"


def make_error(status: int, message: str = "", **fields: Any) -> Answer:
    return Answer({"error": {"message": message, **fields}}, status)


def make_reply(text: Any, finish_reason: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return the JSON of a chat completion: 10 tokens of prompt, 5 of reply."""
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "model": "small",
        "system_fingerprint": "fp_1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **fields,
    }


def make_anthropic_reply(text: str, stop_reason: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


@dataclass
class ChatServer:
    """A running server.

    Args:
        script: Answers every request after the faults.
        faults: The answers to the first requests.
        payloads: The JSON of every request.
        headers: The headers of every request.
        paths: The path and query of every request.
        arrivals: When each request arrived, by ``time.monotonic``.
        most_at_a_time: The largest number of requests that were open at a time.
    """

    script: Script = answer_done
    faults: list[Answer] = field(default_factory=list)
    payloads: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    arrivals: list[float] = field(default_factory=list)
    most_at_a_time: int = 0
    origin: str = ""
    _n_open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def answer(self, path: str, headers: Mapping[str, str], payload: dict[str, Any]) -> Answer:
        with self._lock:
            self.payloads.append(payload)
            self.headers.append({**headers})
            self.paths.append(path)
            self.arrivals.append(time.monotonic())
            self._n_open += 1
            self.most_at_a_time = max(self.most_at_a_time, self._n_open)
            fault = self.faults.pop(0) if self.faults else None
        answer = fault or self.script(payload)
        if isinstance(answer, str):
            is_anthropic = "/messages" in path
            body = make_anthropic_reply(answer) if is_anthropic else make_reply(answer)
            answer = Answer(body)
        time.sleep(answer.seconds)
        with self._lock:
            self._n_open -= 1
        return answer

    def list_prompts(self) -> list[str]:
        """Return the last message of every request."""
        return [payload["messages"][-1]["content"] for payload in self.payloads]


@contextmanager
def serve_chat(
    script: Script = answer_done, faults: Sequence[Answer] = ()
) -> Iterator[ChatServer]:
    """Serve until the block ends; requests that still wait are dropped."""
    chat = ChatServer(script, list(faults))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            payload = json.loads(self.rfile.read(length))
            answer = chat.answer(self.path, dict(self.headers), payload)
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content[: answer.cut])
            self.close_connection = answer.cut is not None

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, TimeoutError):
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    chat.origin = f"http://127.0.0.1:{server.server_address[1]}"
    with answer_in_thread(server):
        yield chat
