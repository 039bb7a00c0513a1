from __future__ import annotations

import email.utils
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.chat.failures import (
    MAX_DELAY,
    classify_status,
    parse_retry_after,
    read_error,
    sample_delay,
)

QUOTA = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
PER_MINUTE = {"error": {"message": "Quota exceeded: 10 requests per minute", "code": "rate_limit"}}


@pytest.mark.parametrize(
    ("status", "body", "reaction", "cause"),
    [
        (429, QUOTA, "stop", "insufficient_quota"),
        (429, PER_MINUTE, "retry", "429"),
        (401, None, "stop", "401"),
        (402, None, "stop", "402"),
        (403, None, "stop", "403"),
        (404, None, "stop", "404"),
        (400, None, "reject", "400"),
        (413, None, "reject", "413"),
        (422, None, "reject", "422"),
        (408, None, "retry", "408"),
        (409, None, "retry", "409"),
        (500, None, "retry", "500"),
        (502, b"<html>", "retry", "502"),
        (503, {"error": "loading model"}, "retry", "503"),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, "retry", "529"),
    ],
)
def test_the_status_decides_what_follows(
    status: int, body: Any, reaction: str, cause: str
) -> None:
    failure = classify_status(status, body, {})
    assert (failure.reaction, failure.cause) == (reaction, cause)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, ""),
        ("overloaded", "overloaded"),
        ({"error": "loading"}, "loading"),
        ({"message": "no"}, "no"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"error": {"message": ["no"]}}, ""),
        ([1], ""),
    ],
)
def test_the_message_is_read_in_every_form(body: Any, message: str) -> None:
    error = read_error(body).get("message")
    assert (error if isinstance(error, str) else "") == message


def test_a_server_that_asks_to_wait_for_hours_stops_all_requests() -> None:
    failure = classify_status(429, PER_MINUTE, {"retry-after": "7200"})
    assert failure.reaction == "stop"
    assert "the server asks to wait 7,200 s" in failure.message
    assert classify_status(429, PER_MINUTE, {"retry-after": "20"}).retry_after == 20


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-5", "Mon, 99 Foo", "1e999"])
def test_an_unreadable_retry_after_is_no_wait(text: str) -> None:
    assert parse_retry_after({"retry-after": text}) == 0


def test_retry_after_may_be_a_date() -> None:
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 28 < parse_retry_after({"retry-after": date}) <= 30
    past = email.utils.formatdate(time.time() - 30, usegmt=True)
    assert parse_retry_after({"retry-after": past}) == 0


@given(st.integers(1, 10_000), st.integers(0, 1000))
def test_the_delay_is_jittered_below_a_bound_that_doubles(tries: int, seed: int) -> None:
    bound = min(MAX_DELAY, 0.5 * 2.0 ** min(tries - 1, 100))
    assert bound / 2 <= sample_delay(tries, random.Random(seed)) <= bound
