from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import (
    BrokenContract,
    DeadProcess,
    MalformedLine,
    OutOfRange,
    TooLittleMemory,
    Unwritable,
)
from recbias.core.registry import Registry
from recbias.runner.boundary import attempt, blame_plugin


def test_a_result_is_returned() -> None:
    assert attempt(lambda: 3) == (3, None)


def test_a_bug_is_a_failure_with_its_traceback() -> None:
    _, failure = attempt(lambda: 1 / 0)
    assert failure is not None
    assert failure.message == "ZeroDivisionError: division by zero"
    assert "1 / 0" in failure.traceback
    assert not failure.user


def test_an_error_of_the_user_has_no_traceback() -> None:
    def work() -> None:
        raise MalformedLine("five fields", where="a.csv:3", remedy="fix the line")

    _, failure = attempt(work)
    assert failure is not None
    assert (failure.message, failure.help) == ("a.csv:3: five fields", "fix the line")
    assert failure.user
    assert not failure.traceback


@pytest.mark.parametrize(
    ("error", "is_lasting"),
    [
        (ZeroDivisionError(), True),
        (OutOfRange("it diverged"), True),
        (SystemExit(1), True),
        (MemoryError(), False),
        (ConnectionResetError(), False),
        (TooLittleMemory("the device is full"), False),
    ],
)
def test_failures_that_would_occur_again_are_reported(
    error: BaseException, is_lasting: bool
) -> None:
    def work() -> None:
        raise error

    calls: list[bool] = []
    _, failure = attempt(work, on_lasting_failure=lambda: calls.append(True))
    assert failure is not None
    assert calls == ([True] if is_lasting else [])


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [
        (
            RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be"),
            "the GPU failed: unspecified launch failure",
            "run the same command again to resume, on another device if it fails again",
        ),
        (
            DeadProcess("process 2 of 2 died (signal 9)"),
            "process 2 of 2 died (signal 9)",
            "run the same command again to go on from the last checkpoint",
        ),
    ],
)
def test_a_lost_device_or_process_keeps_the_checkpoint(
    error: Exception, message: str, remedy: str
) -> None:
    def lose() -> None:
        raise error

    discarded: list[bool] = []
    _, failure = attempt(lose, on_lasting_failure=lambda: discarded.append(True))
    assert failure is not None
    assert (failure.message, failure.help, failure.user) == (message, remedy, False)
    assert discarded == []


def test_a_full_disk_stops_the_run() -> None:
    def work() -> None:
        raise Unwritable("the disk is full")

    with pytest.raises(Unwritable):
        attempt(work)


def test_a_plugin_that_exits_is_a_failure() -> None:
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
def test_errors_in_plugin_code_name_its_line(error: BaseException) -> None:
    with pytest.raises(BrokenContract) as caught, blame_plugin("gives() of Mine"):
        raise error
    assert caught.value.message.startswith(f"gives() of Mine failed: {type(error).__name__}")
    assert "(test_boundary.py:" in caught.value.message
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [MalformedLine("five fields"), MemoryError(), KeyboardInterrupt()]
)
def test_errors_that_are_not_the_plugins_are_raised_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, blame_plugin("gives() of Mine"):
        raise error
    assert caught.value is error


def test_a_failure_inside_a_plugin_names_the_line_of_its_author(tmp_path: Path) -> None:
    text = "class Mine:\n    def fit(self):\n        return sorted(3)\n"
    (tmp_path / "mine.py").write_text(text)
    plugin = Registry("model", {}, "recbias.models").load("./mine.py:Mine", base=tmp_path)()
    _, failure = attempt(plugin.fit)
    assert failure is not None
    assert failure.message.endswith("(mine.py:3: return sorted(3))")
    assert (failure.user, failure.help) == (False, "fix the code of the plug-in")
    assert "return sorted(3)" in failure.traceback
    place = r"\(mine\.py:3: return sorted\(3\)\)"
    with pytest.raises(BrokenContract, match=place), blame_plugin("fit() of Mine"):
        plugin.fit()


def test_the_last_line_of_the_author_is_named_although_a_library_failed(tmp_path: Path) -> None:
    text = "import json\nclass Theirs:\n    def fit(self):\n        return json.loads('{')\n"
    (tmp_path / "theirs.py").write_text(text)
    plugin = Registry("model", {}, "recbias.models").load("./theirs.py:Theirs", base=tmp_path)()
    _, failure = attempt(plugin.fit)
    assert failure is not None
    assert "(theirs.py:4: return json.loads('{'))" in failure.message
