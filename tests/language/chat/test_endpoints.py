from __future__ import annotations

import random
import re
import time
from typing import Any

import pytest

from recbias.core.errors import OutOfRange
from recbias.language.chat.endpoints import HIDDEN, Credentials, validate_extra_body


@pytest.mark.parametrize(
    "text",
    ["key: XNlcjc6UEFTU1BMQU5UNzc= refused", "sk-ab...PLANT99abc", "PASSPLANT77", "user7:PASSPL"],
)
def test_parts_of_secrets_are_hidden(text: str) -> None:
    credentials = Credentials(key="sk-abKEYPLANT99abc", userinfo="user7:PASSPLANT77")
    hidden = credentials.hide_in(text)
    assert HIDDEN in hidden
    for secret in ("sk-abKEYPLANT99abc", "user7:PASSPLANT77", "dXNlcjc6UEFTU1BMQU5UNzc="):
        parts = [secret[i : i + 8] for i in range(len(secret) - 7)]
        assert not any(part in hidden for part in parts)


def hide_by_definition(text: str, parts: set[str]) -> str:
    """Return a text in which each position that a part covers is hidden."""
    hidden = {
        at
        for start in range(len(text))
        for at in range(start, start + 8)
        if text[start : start + 8] in parts
    }
    marks = ["#" if at in hidden else letter for at, letter in enumerate(text)]
    return re.sub("#+", HIDDEN, "".join(marks))


@pytest.mark.parametrize("seed", range(20))
def test_hidden_positions_are_those_of_the_parts(seed: int) -> None:
    chance = random.Random(seed)
    key = "".join(chance.choices("ab", k=11))
    text = "".join(chance.choices("ab", k=2000))
    parts = {key[start : start + 8] for start in range(4)}
    assert Credentials(key=key).hide_in(text) == hide_by_definition(text, parts)


def test_a_long_text_without_secrets_is_searched_fast() -> None:
    text = "1. a " * 10**6
    start = time.process_time()
    assert Credentials(key="sk-1234567890").hide_in(text) == text
    assert time.process_time() - start < 2  # position by position it takes 5 s


@pytest.mark.parametrize(
    "body",
    [{"api_key": "x"}, {"Authorization": "x"}, {"token": "x"}, {"auth": {"access_token": "x"}}],
)
def test_fields_named_like_a_secret_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(OutOfRange, match="secret"):
        validate_extra_body(body)


def test_other_fields_of_servers_are_accepted() -> None:
    validate_extra_body(
        {"prompt_cache_key": "a", "stop_token_ids": [1], "cache_prompt": False, "min_tokens": 2}
    )
