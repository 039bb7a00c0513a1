from __future__ import annotations

import json
import multiprocessing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from recbias.core.errors import Unwritable
from recbias.language.endpoints import Budget
from recbias.language.reply_store import SharedLimits, Spending

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
