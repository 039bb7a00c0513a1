from __future__ import annotations

import logging
import pickle  # noqa: TID251  worker processes pickle their errors
import warnings

import pytest

from recbias.core.errors import Faults, OutOfRange, StageError, UserError
from recbias.core.text import guard_messages, make_printable


def test_an_error_is_printed_as_location_message_and_remedy() -> None:
    error = OutOfRange("must be at least 1", where="a.yaml:3:4: k", remedy="set k: 10")
    assert error.lines() == ["error: a.yaml:3:4: k: must be at least 1", "help: set k: 10"]


def test_errors_are_moved_to_a_setting_with_their_place_in_the_message() -> None:
    fault = OutOfRange("is 0", where="a.yaml:3", remedy="write 1")
    moved = fault.locate_at("words")
    assert isinstance(moved, OutOfRange)
    assert moved.lines() == ["error: words: a.yaml:3: is 0", "help: write 1"]
    several = Faults([fault, UserError("b.yaml: no key")]).locate_at("words")
    assert several.lines() == [*moved.lines(), "error: words: b.yaml: no key"]


def test_an_error_of_a_worker_process_keeps_its_lines() -> None:
    error = OutOfRange("must be at least 1", where="k", remedy="set k: 10")
    assert pickle.loads(pickle.dumps(error)).lines() == error.lines()


def test_a_notebook_shows_the_lines_of_an_error_of_the_user_in_place_of_the_traceback() -> None:
    faults = Faults([UserError("no file", remedy="name one"), UserError("no key")])
    render = faults._render_traceback_  # the hook of IPython
    assert render() == ["error: no file", "help: name one", "error: no key"]
    assert not hasattr(StageError("a bug"), "_render_traceback_")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain [b]text[/b] \\ é 日本\u3000語 👩\u200d🔬", None),
        ("a\nerror: fake:1:1: x\r\tb", r"a\nerror: fake:1:1: x\r\tb"),
        ("\x1b]0;x\x07\x00\x7f", r"\x1b]0;x\x07\x00\x7f"),
        ("\x85\x9b2J", r"\x85\x9b2J"),
        ("\u2028\u2029\x0b\x0c\x1c", r"\u2028\u2029\x0b\x0c\x1c"),
        ("a\u202eb\u2066c\u200fd", r"a\u202eb\u2066c\u200fd"),
        ("\ud800", r"\ud800"),
        (ValueError("a\nb"), r"a\nb"),
    ],
    ids=["plain", "lines", "C0", "C1", "separators", "direction", "surrogate", "object"],
)
def test_control_characters_become_escape_sequences(text: object, line: str | None) -> None:
    assert make_printable(text) == (text if line is None else line)


def test_warnings_and_log_messages_of_libraries_are_printable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    factory = logging.getLogRecordFactory()
    guard_messages()
    record = logging.getLogRecordFactory()("a", 30, "a.py", 1, "%s", ("x\ny\x07",), None)
    logging.setLogRecordFactory(factory)
    assert record.getMessage() == r"x\ny\x07"
    line = warnings.formatwarning("mixed\nerror: fake\x1b[2J", UserWarning, "a.py", 1)
    assert line == "a.py:1: UserWarning: mixed\\nerror: fake\\x1b[2J\n"
