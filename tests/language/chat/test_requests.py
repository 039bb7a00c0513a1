from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.endpoints import ChatReply, ChatRequest, Decoding, Message

REQUEST = ChatRequest(
    provider="openai",
    base_url="http://localhost/v1",
    model="small",
    messages=(Message("system", "You know films."), Message("user", "Ten films, please.")),
    decoding=Decoding(temperature=0.0, top_p=1.0, seed=1),
)


@pytest.mark.parametrize(
    "changes",
    [
        {"provider": "anthropic"},
        {"base_url": "http://localhost/v2"},
        {"model": "large"},
        {"revision": "1"},
        {"messages": REQUEST.messages[1:]},
        {"messages": REQUEST.messages[::-1]},
        {"messages": (Message("user", "You know films."), REQUEST.messages[1])},
        {"sample": 1},
        {"decoding": replace(REQUEST.decoding, temperature=0.5)},
        {"decoding": replace(REQUEST.decoding, top_p=None)},
        {"decoding": replace(REQUEST.decoding, top_k=250)},
        {"decoding": replace(REQUEST.decoding, max_tokens=511)},
        {"decoding": replace(REQUEST.decoding, seed=2)},
        {"decoding": replace(REQUEST.decoding, stop=("11.",))},
        {"decoding": replace(REQUEST.decoding, response_schema={"type": "object"})},
        {"decoding": replace(REQUEST.decoding, extra_body={"cache_prompt": False})},
    ],
)
def test_everything_that_could_change_the_reply_changes_the_address(
    changes: dict[str, Any],
) -> None:
    assert replace(REQUEST, **changes).address != REQUEST.address


def test_secrets_of_the_url_are_not_part_of_a_request() -> None:
    request = replace(REQUEST, base_url="http://me:password1@localhost/v1/?key=password2#x")
    assert request == REQUEST
    assert "password" not in repr(request)


@given(st.text() | st.text(st.characters(categories=["Cs"])))
def test_any_reply_can_be_written(text: str) -> None:
    reply = ChatReply(text=text)
    assert reply.text.encode().decode() == reply.text
    assert replace(reply) == reply


def test_lone_surrogates_of_a_reply_are_replaced_and_pairs_joined() -> None:
    assert ChatReply(text="a\ud800b \ud83e\udd8a é").text == "a\ufffdb 🦊 é"
