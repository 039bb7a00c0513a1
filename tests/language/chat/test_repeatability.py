"""A share of the requests is sent once more, and the replies are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from recbias.core.context import Fact, collect_facts, collect_warnings
from recbias.language.client import complete, plan_requests
from recbias.language.endpoints import select_repeats
from support.chat.chat_requests import make_model, make_requests
from support.chat.chat_server import Answer, Script, make_reply, serve_chat


def echo(payload: dict[str, Any]) -> str:
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
    facts, n_sent = repeat(tmp_path, echo)
    assert n_sent == 30
    assert facts["repeated_requests"] == 10
    assert facts["repeated_same_text"] == facts["repeated_same_titles"] == 10


def test_replies_without_titles_have_no_titles_in_common(tmp_path: Path) -> None:
    facts, _ = repeat(tmp_path, lambda _: make_refusal())
    assert (facts["repeated_same_text"], facts["repeated_same_titles"]) == (10, 0)


def test_repeats_are_planned_stored_and_never_sent_twice(tmp_path: Path) -> None:
    with serve_chat(echo) as server:
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
    with serve_chat(echo) as server:
        model = make_model(server, seed=4)
        (request,) = make_requests(model, 1)
        other = model.build_request(request.messages, sample=1)
    (again,) = select_repeats([request], 1.0).values()
    assert (request.decoding.seed, again.decoding.seed, other.decoding.seed) == (4, 4, 5)
    assert len({request.address, again.address, other.address}) == 3
    assert not select_repeats([other], 1.0)
