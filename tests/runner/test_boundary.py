from __future__ import annotations

import pytest

from recbias.core.errors import (
    BrokenContract,
    MalformedLine,
    OutOfRange,
    TooLittleMemory,
    Unwritable,
)
from recbias.runner.boundary import attempt, blaming


def test_a_result_comes_through() -> None:
    assert attempt(lambda: 3) == (3, None)


def test_a_bug_is_a_failure_with_its_traceback() -> None:
    _, failure = attempt(lambda: 1 / 0)
    assert failure is not None
    assert failure.message == "ZeroDivisionError: division by zero"
    assert "1 / 0" in failure.traceback
    assert not failure.user


def test_the_users_fault_has_no_traceback() -> None:
    def work() -> None:
        raise MalformedLine("five fields", where="a.csv:3", remedy="mend the line")

    _, failure = attempt(work)
    assert failure is not None
    assert (failure.message, failure.help) == ("a.csv:3: five fields", "mend the line")
    assert failure.user
    assert not failure.traceback


@pytest.mark.parametrize(
    ("error", "recurs"),
    [
        (ZeroDivisionError(), True),
        (OutOfRange("it diverged"), True),
        (SystemExit(1), True),
        (MemoryError(), False),
        (ConnectionResetError(), False),
        (TooLittleMemory("the device is full"), False),
    ],
)
def test_it_tells_what_would_be_the_same_the_next_time(error: BaseException, recurs: bool) -> None:
    def work() -> None:
        raise error

    told: list[bool] = []
    _, failure = attempt(work, recurs=lambda: told.append(True))
    assert failure is not None
    assert told == ([True] if recurs else [])


def test_a_full_disk_stops_the_run() -> None:
    def work() -> None:
        raise Unwritable("the disk is full")

    with pytest.raises(Unwritable):
        attempt(work)


def test_a_plug_in_that_leaves_the_process_is_a_failure() -> None:
    def work() -> None:
        raise SystemExit(0)

    _, failure = attempt(work)
    assert failure is not None
    assert failure.message == "SystemExit: 0"


def test_an_interrupt_is_not_a_failure() -> None:
    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(work)


@pytest.mark.parametrize("error", [AssertionError(), SystemExit(0), KeyError("a"), OSError("b")])
def test_code_of_a_plug_in_is_blamed_with_its_line(error: BaseException) -> None:
    with pytest.raises(BrokenContract) as caught, blaming("gives() of Mine"):
        raise error
    assert caught.value.message.startswith(f"gives() of Mine failed: {type(error).__name__}")
    assert "(test_boundary.py:" in caught.value.message
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [MalformedLine("five fields"), MemoryError(), KeyboardInterrupt()]
)
def test_what_no_code_is_to_blame_for_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, blaming("gives() of Mine"):
        raise error
    assert caught.value is error
