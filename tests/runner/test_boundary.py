from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import (
    BrokenContract,
    DeadProcess,
    MalformedLine,
)
from recbias.core.registry import Registry
from recbias.runner.boundary import attempt, blame_plugin


def test_an_error_of_the_user_has_no_traceback() -> None:
    def work() -> None:
        raise MalformedLine("five fields", where="a.csv:3", remedy="fix the line")

    _, failure = attempt(work)
    assert failure is not None
    assert (failure.message, failure.help) == ("a.csv:3: five fields", "fix the line")
    assert failure.user
    assert not failure.traceback


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


def test_a_plugin_that_exits_is_a_failure() -> None:
    def work() -> None:
        raise SystemExit(0)

    _, failure = attempt(work)
    assert failure is not None
    assert failure.message == "SystemExit: 0"


@pytest.mark.parametrize("error", [AssertionError(), SystemExit(0), KeyError("a"), OSError("b")])
def test_errors_in_plugin_code_name_its_line(error: BaseException) -> None:
    with pytest.raises(BrokenContract) as caught, blame_plugin("gives() of Mine"):
        raise error
    assert caught.value.message.startswith(f"gives() of Mine failed: {type(error).__name__}")
    assert "(test_boundary.py:" in caught.value.message
    assert caught.value.__cause__ is error


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
