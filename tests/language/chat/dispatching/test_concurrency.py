from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.chat.dispatching.concurrency import AdaptiveConcurrency


def make_started(maximum: int = 100) -> AdaptiveConcurrency:
    concurrency = AdaptiveConcurrency(maximum)
    concurrency.grow(now=0.0)
    return concurrency


def test_requests_are_sent_one_by_one_until_the_first_reply() -> None:
    concurrency = AdaptiveConcurrency(maximum=100)
    assert concurrency.admits(0)
    assert not concurrency.admits(1)
    concurrency.grow(now=0.0)
    assert concurrency.admits(19)
    assert not concurrency.admits(20)


def test_the_maximum_is_never_exceeded() -> None:
    concurrency = AdaptiveConcurrency(maximum=8)
    for _ in range(100):
        concurrency.grow(now=0.0)
    assert concurrency.limit == 8


def test_a_rate_limit_shrinks_once_in_an_episode() -> None:
    concurrency = make_started()
    # 20 x 0.8 = 16 at 100 s; nothing until 115 s; then 16 x 0.8 = 12.8
    assert concurrency.shrink(now=100.0, retry_after=0.0)
    for now in (100.1, 110.0, 114.9):
        assert not concurrency.shrink(now, retry_after=0.0)
    assert concurrency.limit == 16
    assert concurrency.shrink(now=115.0, retry_after=0.0)
    assert concurrency.limit == pytest.approx(12.8)


def test_retry_after_extends_the_cooldown() -> None:
    concurrency = make_started()
    concurrency.shrink(now=100.0, retry_after=60.0)
    assert concurrency.cooldown_end == 160
    concurrency.shrink(now=150.0, retry_after=5.0)
    assert concurrency.cooldown_end == 160
    concurrency.shrink(now=150.0, retry_after=20.0)
    assert concurrency.cooldown_end == 170


def test_nothing_grows_in_the_cooldown() -> None:
    concurrency = make_started()
    concurrency.shrink(now=100.0, retry_after=0.0)
    concurrency.grow(now=114.0)
    assert concurrency.limit == 16
    concurrency.grow(now=115.0)  # 16 + 1/16
    assert concurrency.limit == 16.0625


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0, 100), st.floats(0, 600))), st.integers(1, 50)
)
def test_the_limit_stays_between_one_and_the_maximum(
    events: list[tuple[bool, float, float]], maximum: int
) -> None:
    concurrency, now = AdaptiveConcurrency(maximum), 0.0
    for is_reply, seconds, retry_after in events:
        now += seconds
        if is_reply:
            concurrency.grow(now)
        else:
            concurrency.shrink(now, retry_after)
        assert 1 <= concurrency.limit <= maximum
