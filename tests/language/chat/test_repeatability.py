"""A share of the requests is sent once more, and the replies are compared."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recbias.core.context import Fact, collect_facts, collect_warnings
from recbias.language.client import complete, plan_requests
from recbias.language.endpoints import REPEAT, select_repeats
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


def test_other_texts_may_say_the_same(tmp_path: Path) -> None:
    numbers = itertools.count()
    facts, _ = repeat(tmp_path, lambda _: "A" if next(numbers) < 20 else "a")
    assert (facts["repeated_same_text"], facts["repeated_same_titles"]) == (0, 10)


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


@pytest.mark.parametrize(("share", "n_repeats"), [(None, 0), (0.001, 1), (0.1, 2), (1.0, 20)])
def test_share_is_rounded_up_and_does_not_depend_on_the_order(
    share: float | None, n_repeats: int
) -> None:
    with serve_chat(echo) as server:
        requests = make_requests(make_model(server), 20)
    repeats = select_repeats(requests, share)
    assert len(repeats) == n_repeats
    assert select_repeats(requests[::-1], share) == repeats
    assert all(request.sample == REPEAT for request in repeats.values())


def test_seed_of_a_repeated_request_is_the_same_and_that_of_another_sample_is_not() -> None:
    with serve_chat(echo) as server:
        model = make_model(server, seed=4)
        (request,) = make_requests(model, 1)
        other = model.build_request(request.messages, sample=1)
    (again,) = select_repeats([request], 1.0).values()
    assert (request.decoding.seed, again.decoding.seed, other.decoding.seed) == (4, 4, 5)
    assert len({request.address, again.address, other.address}) == 3
    assert not select_repeats([other], 1.0)
