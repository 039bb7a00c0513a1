"""Processes that are killed or interrupted lose at most the requests in flight."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import Fact, collect_facts, collect_warnings, stage_context
from recbias.core.errors import BudgetSpent, MissingReplies, Unwritable
from recbias.core.files import forbid_network
from recbias.language.client import complete, plan_requests
from recbias.language.endpoints import Budget, ChatRequest, Message, Prices, select_repeats
from recbias.language.reply_store import SharedLimits, Spending
from support.chat.chat_requests import count_missing, make_model, make_requests
from support.chat.chat_server import Answer, ChatServer, Script, make_reply, serve_chat


def echo(payload: dict[str, Any]) -> str:
    return f"reply to {payload['messages'][-1]['content']}"


def test_a_second_run_sends_nothing(tmp_path: Path) -> None:
    with serve_chat(echo) as server:
        model = make_model(server)
        requests = make_requests(model, 20)
        first = complete(requests, model, folder=tmp_path)
        with collect_facts() as facts:
            second = complete(requests, model, folder=tmp_path)
    assert second == first
    assert all(reply.cached for reply in second)
    assert len(server.payloads) == 20
    assert facts["replies_cached"] == 20
    assert "requests_sent" not in facts


def test_equal_requests_are_sent_once_and_samples_each(tmp_path: Path) -> None:
    with serve_chat(echo) as server:
        model = make_model(server)
        (request,) = make_requests(model, 1)
        samples = [replace(request, sample=i) for i in range(3)]
        replies = complete([request, request, *samples], model, folder=tmp_path)
    assert len(replies) == 5
    assert len(server.payloads) == 3


def test_reply_files_of_somebody_else_answer_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAID_KEY", "sk-of-somebody-else")
    with serve_chat(echo) as server:
        model = make_model(server, api_key_env="PAID_KEY")
        requests = make_requests(model, 5)
        theirs = complete(requests, model, folder=tmp_path / "theirs")
    monkeypatch.delenv("PAID_KEY")
    shutil.copytree(tmp_path / "theirs", tmp_path / "mine")
    assert complete(requests, model, folder=tmp_path / "mine") == theirs


def test_offline_a_missing_reply_is_an_error_that_counts(tmp_path: Path) -> None:
    with serve_chat(echo) as server:
        model = make_model(server)
        requests = make_requests(model, 10)
        complete(requests[:7], model, folder=tmp_path)
        with forbid_network():
            assert len(complete(requests[:7], model, folder=tmp_path)) == 7
            with pytest.raises(MissingReplies, match="3 replies of small are not stored"):
                complete(requests, model, folder=tmp_path)
    assert len(server.payloads) == 7


def test_the_stage_gives_the_folder_and_gets_progress_and_facts(tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []

    def listen(task: str, completed: int, total: int) -> None:
        progress.append((task, completed, total))

    with (
        serve_chat(echo) as server,
        stage_context(reply_folder=tmp_path, on_progress=listen),
        collect_facts() as facts,
    ):
        model = make_model(server)
        complete(make_requests(model, 3), model)
        complete(make_requests(model, 5), model)
        assert count_missing(make_requests(model, 6)) == 1
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert progress[:4] == [("ask small", i, 3) for i in range(4)]
    assert facts == {
        "requests_sent": 5,
        "prompt_tokens": 50,
        "completion_tokens": 25,
        "replies_cached": 3,
        "replies.complete": 8,
        "served_model": "small",
        "system_fingerprints": 1,
    }


def test_replies_without_text_are_counted_and_warned_of(tmp_path: Path) -> None:
    bodies = {
        "prompt 0": make_reply("1. Al", "length"),
        "prompt 1": make_reply("", "stop"),
        "prompt 2": make_reply(None, "content_filter"),
    }

    def script(payload: dict[str, Any]) -> Answer | str:
        prompt = payload["messages"][-1]["content"]
        return Answer(bodies[prompt]) if prompt in bodies else echo(payload)

    with serve_chat(script) as server, collect_facts() as facts, collect_warnings() as warnings:
        model = make_model(server)
        replies = complete(make_requests(model, 5), model, folder=tmp_path)
    assert [reply.outcome for reply in replies] == [
        *("length", "empty", "refusal", "complete", "complete")
    ]
    assert warnings == [
        "3 of 5 replies have no text to read: 1 length, 1 refusal, 1 empty; raise max_tokens"
    ]
    assert {name: facts[name] for name in facts if name.startswith("replies.")} == {
        "replies.complete": 2,
        "replies.length": 1,
        "replies.refusal": 1,
        "replies.empty": 1,
    }


def test_another_model_than_asked_for_is_warned_of(tmp_path: Path) -> None:
    body = make_reply("1. Alien", model="tiny\x1b[31m")
    with serve_chat(lambda _: Answer(body)) as server, collect_warnings() as warnings:
        model = make_model(server)
        complete(make_requests(model, 2), model, folder=tmp_path)
    assert warnings == ["2 replies are of the model tiny\\x1b[31m, not of small"]


def test_a_budget_stops_with_every_reply_stored(tmp_path: Path) -> None:
    with serve_chat(echo) as server, stage_context(run_id="first"):
        model = make_model(server, budget=Budget(requests=30))
        requests = make_requests(model, 50)
        with pytest.raises(
            BudgetSpent, match=r"30 request\(s\) were sent, 20 replies are missing"
        ):
            complete(requests, model, folder=tmp_path)
        assert len(server.payloads) == 30
        assert count_missing(requests, tmp_path) == 20
        with stage_context(run_id="second"):
            complete(requests, model, folder=tmp_path)
    assert len(server.payloads) == 50


def test_a_budget_of_money_counts_input_and_output(tmp_path: Path) -> None:
    # 10 tokens at 1,000 and 5 at 2,000 per million cost 0.02; the estimate of a request is
    # 11 x 0.001 + 10 x 0.002 = 0.031, so 0.1 allows the next after n while 0.02 n <= 0.069: 4.
    with serve_chat(echo) as server:
        model = make_model(
            server,
            max_tokens=10,
            budget=Budget(money=0.1),
            prices=Prices(input=1000.0, output=2000.0),
        )
        with pytest.raises(BudgetSpent, match=r"\(money\)"):
            complete(make_requests(model, 50), model, folder=tmp_path)
    assert len(server.payloads) == 4


@pytest.mark.parametrize(("n_tokens", "n_warnings"), [(lambda n: min(n, 500), 1), (int, 0)])
def test_a_server_that_cuts_prompts_is_warned_of(
    tmp_path: Path, n_tokens: Callable[[int], int], n_warnings: int
) -> None:
    def script(payload: dict[str, Any]) -> Answer:
        count = n_tokens(len(payload["messages"][-1]["content"].split()))
        return Answer(make_reply("1. Alien", usage={"prompt_tokens": count}))

    with serve_chat(script) as server, collect_warnings() as warnings:
        model = make_model(server)
        prompts = ["film " * n for n in (20, 400, 2_000, 8_000)]
        requests = [model.build_request([Message("user", prompt)]) for prompt in prompts]
        complete(requests, model, folder=tmp_path)
    assert len(warnings) == n_warnings
    assert all("2 prompts of very different length have 500 tokens" in text for text in warnings)


ROOT = Path(__file__).parents[2]


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


ONE = Spending(requests=1, tokens=100, money=0.5)


@dataclass
class Clock:
    seconds: float = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(tmp_path: Path, clock: Clock) -> SharedLimits:
    return SharedLimits(tmp_path / "limits" / "model.json", run="a", clock=clock)


def count_permitted(limits: SharedLimits, clock: Clock, seconds: int, step: float = 0.25) -> int:
    end, n_permitted = clock.seconds + seconds, 0
    while clock.seconds < end:
        permission = limits.reserve(ONE)
        n_permitted += not permission.wait
        clock.seconds += permission.wait or step / 1000
    return n_permitted


def test_requests_per_minute_hold(limits: SharedLimits, clock: Clock) -> None:
    limits = replace(limits, requests_per_minute=30)  # one every 2 s: at 0, 2, 4, ..., 58
    assert count_permitted(limits, clock, 60) == 30


def test_tokens_per_minute_hold(limits: SharedLimits, clock: Clock) -> None:
    limits = replace(limits, tokens_per_minute=1000)  # 100 tokens every 6 s
    assert count_permitted(limits, clock, 60) == 10


def test_unused_tokens_are_given_back(limits: SharedLimits) -> None:
    limits = replace(limits, tokens_per_minute=1000)
    limits.reserve(ONE)
    assert limits.reserve(ONE).wait == pytest.approx(6)  # 60 x 100 / 1000
    limits.settle(ONE, Spending(requests=1, tokens=25))
    assert limits.reserve(ONE).wait == pytest.approx(1.5)  # 60 x 25 / 1000


def test_a_pause_holds_for_every_process(limits: SharedLimits, clock: Clock) -> None:
    other = replace(limits, run="b")
    limits.pause(20)
    limits.pause(5)
    assert other.reserve(ONE).wait == pytest.approx(20)
    clock.seconds += 21
    assert other.reserve(ONE).wait == 0


@pytest.mark.parametrize(
    ("budget", "n_allowed", "exceeded"),
    [
        (Budget(requests=3), 3, "requests"),
        (Budget(tokens=250), 2, "tokens"),
        (Budget(money=2.0), 4, "money"),
        (Budget(requests=9, tokens=100, money=9), 1, "tokens"),
        (Budget(requests=0), 0, "requests"),
    ],
)
def test_a_budget_is_never_exceeded(
    limits: SharedLimits, budget: Budget, n_allowed: int, exceeded: str
) -> None:
    limits = replace(limits, budget=budget)
    assert [limits.reserve(ONE).exceeded for _ in range(n_allowed)] == [""] * n_allowed
    assert limits.reserve(ONE).exceeded == exceeded


def test_each_run_has_its_own_budget(limits: SharedLimits, clock: Clock) -> None:
    limits = replace(limits, budget=Budget(requests=1))
    other = replace(limits, run="b")
    assert not limits.reserve(ONE).exceeded
    assert not other.reserve(ONE).exceeded
    assert other.reserve(ONE).exceeded
    clock.seconds += 8 * 86_400
    replace(limits, run="c").reserve(ONE)
    assert list(json.loads(limits.path.read_text(encoding="utf-8"))["spending"]) == ["c"]


def reserve_many(path: Path) -> int:
    limits = SharedLimits(path, run="a", budget=Budget(requests=100))
    return sum(not limits.reserve(ONE).exceeded for _ in range(60))


def test_processes_share_one_budget(tmp_path: Path) -> None:
    # 4 processes x 60 requests under one budget of 100
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        permitted = pool.map(reserve_many, [tmp_path / "limits.json"] * 4)
    assert sum(permitted) == 100


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    limits = SharedLimits(tmp_path / "file" / "limits.json", "a", budget=Budget(requests=1))
    with pytest.raises(Unwritable, match="cannot be written"):
        limits.reserve(ONE)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_a_damaged_file_is_begun_again(limits: SharedLimits, content: bytes) -> None:
    limits = replace(limits, budget=Budget(requests=1))
    limits.path.parent.mkdir()
    limits.path.write_bytes(content)
    assert [limits.reserve(ONE).exceeded for _ in range(2)] == ["", "requests"]


def echo_repeatability(payload: dict[str, Any]) -> str:
    return f"1. reply to {payload['messages'][-1]['content']}"


def make_refusal() -> Answer:
    return Answer(make_reply("I cannot help with that.", "content_filter"))


def repeat(
    folder: Path, script: Script, read: Callable[[str], Sequence[object]] | None = str.casefold
) -> tuple[dict[str, Fact], int]:
    """Return the facts of 20 requests of which half are repeated, and the number of requests."""
    with serve_chat(script) as server, collect_facts() as facts, collect_warnings():
        model = make_model(server, repeatability=0.5, concurrency=1)
        replies = complete(make_requests(model, 20), model, folder=folder, read=read)
        assert len(replies) == 20
    return facts, len(server.payloads)


def test_server_that_repeats_itself_has_the_same_replies(tmp_path: Path) -> None:
    facts, n_sent = repeat(tmp_path, echo_repeatability)
    assert n_sent == 30
    assert facts["repeated_requests"] == 10
    assert facts["repeated_same_text"] == facts["repeated_same_titles"] == 10


def test_replies_without_titles_have_no_titles_in_common(tmp_path: Path) -> None:
    facts, _ = repeat(tmp_path, lambda _: make_refusal())
    assert (facts["repeated_same_text"], facts["repeated_same_titles"]) == (10, 0)


def test_repeats_are_planned_stored_and_never_sent_twice(tmp_path: Path) -> None:
    with serve_chat(echo_repeatability) as server:
        model = make_model(server, repeatability=0.25)
        requests = make_requests(model, 8)
        assert len(plan_requests(requests, model, tmp_path)) == 10
        complete(requests, model, folder=tmp_path)
        with collect_facts() as facts:
            complete(requests, model, folder=tmp_path)
        assert all(request.is_stored for request in plan_requests(requests, model, tmp_path))
    assert len(server.payloads) == 10
    assert facts["repeated_requests"] == 2


def test_seed_of_a_repeated_request_is_the_same_and_that_of_another_sample_is_not() -> None:
    with serve_chat(echo_repeatability) as server:
        model = make_model(server, seed=4)
        (request,) = make_requests(model, 1)
        other = model.build_request(request.messages, sample=1)
    (again,) = select_repeats([request], 1.0).values()
    assert (request.decoding.seed, again.decoding.seed, other.decoding.seed) == (4, 4, 5)
    assert len({request.address, again.address, other.address}) == 3
    assert not select_repeats([other], 1.0)
