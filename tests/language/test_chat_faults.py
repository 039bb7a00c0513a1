"""Servers with faults: what is sent again, what stops, and what is kept."""

from __future__ import annotations

import email.utils
import time
from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import collect_facts, collect_warnings
from recbias.core.errors import MissingReplies, RequestRefused
from recbias.language.client import complete
from support.chat.chat_requests import count_missing, make_model, make_requests
from support.chat.chat_server import Answer, answer_done, make_error, make_reply, serve_chat

QUOTA = make_error(429, "You exceeded your current quota", code="insufficient_quota")
TOO_FAST = make_error(429, "Rate limit reached", code="rate_limit_exceeded")


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (TOO_FAST, "429"),
        (make_error(503, "loading model"), "503"),
        (Answer(make_reply("1. Alien"), cut=60), "connection"),
        (Answer(b'{"choices": [{"mess'), "invalid JSON"),
        (Answer(make_reply("late"), seconds=30), "timeout"),
    ],
)
def test_a_passing_fault_is_sent_again(tmp_path: Path, fault: Answer, cause: str) -> None:
    with serve_chat(faults=[fault]) as server, collect_facts() as facts:
        model = make_model(server, timeout_s=0.3)
        replies = complete(make_requests(model, 4), model, folder=tmp_path)
    assert [reply.outcome for reply in replies] == ["complete"] * 4
    assert len(server.payloads) == 5
    assert facts["requests_sent"] == 5
    assert facts[f"failed_requests.{cause}"] == 1


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        (QUOTA, "add credit"),
        (make_error(401, "Incorrect API key"), "check the key in the environment variable OPENAI"),
        (make_error(403, "no access"), "allowed to do"),
        (Answer({"error": "no such route"}, 405), "correct what the server names"),
        (Answer(TOO_FAST.body, 429, {"Retry-After": "86400"}), "run again later"),
    ],
)
def test_a_lasting_fault_stops_at_once_with_the_remedy(
    tmp_path: Path, fault: Answer, remedy: str
) -> None:
    with serve_chat(lambda _: fault) as server:
        model = make_model(server)
        with pytest.raises(RequestRefused) as caught:
            complete(make_requests(model, 40), model, folder=tmp_path)
    assert len(server.payloads) == 1
    error = fault.body["error"]
    assert (error if isinstance(error, str) else error["message"]) in str(caught.value)
    assert remedy in caught.value.remedy


def test_a_quota_that_ends_in_the_middle_loses_no_reply(tmp_path: Path) -> None:
    n_answered = 0

    def script(payload: dict[str, Any]) -> Answer | str:
        nonlocal n_answered
        if len(server.payloads) > 25:
            return QUOTA
        n_answered += 1
        return answer_done(payload)

    with serve_chat(script) as server:
        model = make_model(server)
        requests = make_requests(model, 60)
        with pytest.raises(RequestRefused, match="quota"):
            complete(requests, model, folder=tmp_path)
        assert count_missing(requests, tmp_path) == 60 - n_answered
        server.script = answer_done
        complete(requests, model, folder=tmp_path)


def test_requests_stop_after_their_retries_and_the_others_are_kept(tmp_path: Path) -> None:
    def script(payload: dict[str, Any]) -> Answer | str:
        is_broken = payload["messages"][-1]["content"] in {"prompt 3", "prompt 5"}
        return make_error(500, "boom") if is_broken else answer_done(payload)

    with serve_chat(script) as server:
        model = make_model(server, retries=2)
        requests = make_requests(model, 10)
        with pytest.raises(MissingReplies, match=r"2 request\(s\).* 2 retries \(500: 2\)"):
            complete(requests, model, folder=tmp_path)
        assert server.list_prompts().count("prompt 3") == 3
        assert count_missing(requests, tmp_path) == 2
        server.script = answer_done
        assert len(complete(requests, model, folder=tmp_path)) == 10


def test_a_server_that_goes_down_is_not_asked_for_every_prompt(tmp_path: Path) -> None:
    def script(payload: dict[str, Any]) -> Answer | str:
        return (
            make_error(502, "bad gateway") if len(server.payloads) > 30 else answer_done(payload)
        )

    with serve_chat(script) as server:
        model = make_model(server, retries=0, concurrency=5)
        requests = make_requests(model, 1000)
        with pytest.raises(MissingReplies, match="bad gateway") as caught:
            complete(requests, model, folder=tmp_path)
    assert "check base_url" in caught.value.remedy
    # 20 failures in a row stop it; the requests in flight go on. On a busy machine a success may
    # arrive late, and the failures are counted again from it
    assert len(server.payloads) <= 30 + 2 * 20 + 2 * 5
    assert count_missing(requests, tmp_path) == 970


def test_an_endpoint_that_is_not_there_is_named(tmp_path: Path) -> None:
    with serve_chat() as server:
        pass
    model = make_model(server, retries=1)
    with pytest.raises(MissingReplies, match="Connection refused") as caught:
        complete(make_requests(model, 1000), model, folder=tmp_path)
    assert "check base_url" in caught.value.remedy
    assert server.base_url in str(caught.value)


def test_a_server_that_rejects_everything_is_asked_three_times(tmp_path: Path) -> None:
    error = make_error(400, "max_tokens must be at most 100")
    with serve_chat(lambda _: error) as server:
        model = make_model(server)
        for n_requests in (1, 100):
            with pytest.raises(RequestRefused, match="max_tokens must be at most 100"):
                complete(make_requests(model, n_requests), model, folder=tmp_path)
    assert len(server.payloads) == 1 + 3


def test_a_prompt_that_the_server_rejects_is_a_failed_reply(tmp_path: Path) -> None:
    def script(payload: dict[str, Any]) -> Answer | str:
        is_long = payload["messages"][-1]["content"] in {"prompt 0", "prompt 7"}
        message = "the context has 9,000 tokens, at most 8,192 are possible"
        return make_error(400, message) if is_long else answer_done(payload)

    with serve_chat(script) as server, collect_warnings() as warnings:
        model = make_model(server)
        requests = make_requests(model, 10)
        replies = complete(requests, model, folder=tmp_path)
        again = complete(requests, model, folder=tmp_path)
    assert [i for i, reply in enumerate(replies) if reply.outcome == "failed"] == [0, 7]
    assert "9,000 tokens" in replies[0].finish_reason
    assert again == replies
    assert len(server.payloads) == 10
    assert set(warnings) == {"2 of 10 replies have no text to read: 2 failed"}


def test_a_server_that_only_limits_is_given_up(tmp_path: Path) -> None:
    with serve_chat(lambda _: TOO_FAST) as server:
        model = make_model(server, retries=2)
        with pytest.raises(MissingReplies, match=r"2 retries \(429: 1\)"):
            complete(make_requests(model, 30), model, folder=tmp_path)
    assert len(server.payloads) == 3


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_pauses_all_requests(tmp_path: Path, form: str) -> None:
    with serve_chat() as server:
        model = make_model(server)
        complete(make_requests(model, 1), model, folder=tmp_path)
        headers = {
            "seconds": {"Retry-After": "1"},
            "date": {"Retry-After": email.utils.formatdate(time.time() + 2, usegmt=True)},
        }
        server.faults.append(Answer(TOO_FAST.body, 429, headers[form]))
        complete(make_requests(model, 40), model, folder=tmp_path)
    pairs = zip(server.arrivals[1:], server.arrivals[2:], strict=False)
    assert max(later - earlier for earlier, later in pairs) > 0.7


def test_the_same_replies_with_any_concurrency(tmp_path: Path) -> None:
    def script(payload: dict[str, Any]) -> str:
        return f"reply to {payload['messages'][-1]['content']}"

    def run(concurrency: int) -> list[str]:
        with serve_chat(script, [make_error(500), TOO_FAST]) as server:
            model = make_model(server, concurrency=concurrency)
            requests = make_requests(model, 30)
            replies = complete(requests, model, folder=tmp_path / str(concurrency))
        return [reply.text for reply in replies]

    assert run(1) == run(3) == run(32) == [f"reply to prompt {i}" for i in range(30)]


def test_concurrency_is_the_most_at_a_time(tmp_path: Path) -> None:
    with serve_chat(lambda _: Answer(make_reply("1. Alien"), seconds=0.05)) as server:
        model = make_model(server, concurrency=4)
        complete(make_requests(model, 40), model, folder=tmp_path)
    assert server.most_at_a_time == 4
