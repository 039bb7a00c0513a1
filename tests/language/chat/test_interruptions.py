"""Processes that are killed or interrupted lose at most the requests in flight."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recbias.language.client import complete
from recbias.language.endpoints import ChatRequest
from support.chat.chat_requests import count_missing, make_model, make_requests
from support.chat.chat_server import Answer, ChatServer, make_reply, serve_chat

ROOT = Path(__file__).parents[3]
N_REQUESTS = 300
CONCURRENCY = 8

PROGRAM = f"""
import sys
from pathlib import Path
from recbias.language.client import complete
from support.chat.chat_requests import make_model, make_requests
from support.chat.chat_server import ChatServer

model = make_model(ChatServer(origin=sys.argv[1]), concurrency={CONCURRENCY})
complete(make_requests(model, {N_REQUESTS}), model, folder=Path(sys.argv[2]))
"""


def answer_slowly(payload: dict[str, Any]) -> Answer:
    return Answer(make_reply("1. Alien"), seconds=0.02)


@contextmanager
def start(server: ChatServer, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start the program, and wait until 50 requests have arrived."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, server.origin, str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )
    try:
        end = time.monotonic() + 60
        while len(server.payloads) < 50 and time.monotonic() < end and program.poll() is None:
            time.sleep(0.005)
        yield program
    finally:
        program.kill()
        program.communicate()


def make_program_requests(server: ChatServer) -> list[ChatRequest]:
    return make_requests(make_model(server, concurrency=CONCURRENCY), N_REQUESTS)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_loses_at_most_the_requests_in_flight(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    with serve_chat(answer_slowly) as server:
        with start(server, tmp_path) as program:
            program.send_signal(signal_number)
            assert program.wait(10) == -signal_number
        n_sent = len(server.payloads)
        requests = make_program_requests(server)
        n_stored = N_REQUESTS - count_missing(requests, tmp_path)
        assert 0 < n_stored < N_REQUESTS
        assert n_sent - n_stored <= CONCURRENCY
        complete(requests, make_model(server), folder=tmp_path)
        assert len(server.payloads) - n_sent == N_REQUESTS - n_stored


def test_an_interrupted_process_keeps_the_replies_in_flight(tmp_path: Path) -> None:
    with serve_chat(answer_slowly) as server:
        with start(server, tmp_path) as program:
            program.send_signal(signal.SIGINT)
            _, errors = program.communicate(timeout=10)
        assert errors.strip().endswith(b"KeyboardInterrupt")
        assert b"Exception in thread" not in errors
        missing = count_missing(make_program_requests(server), tmp_path)
        assert missing == N_REQUESTS - len(server.payloads)


def test_an_interrupt_does_not_wait_for_a_hanging_server(tmp_path: Path) -> None:
    def script(payload: dict[str, Any]) -> Answer:
        is_late = len(server.payloads) > 55
        return Answer(make_reply("1. Alien"), seconds=30 if is_late else 0)

    with serve_chat(script) as server, start(server, tmp_path) as program:
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = program.communicate(timeout=20)
        assert time.monotonic() - begin < 10
        assert errors.strip().endswith(b"KeyboardInterrupt")
        assert count_missing(make_program_requests(server), tmp_path) <= N_REQUESTS - 50
