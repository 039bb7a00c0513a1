from __future__ import annotations

import logging
import warnings

import pytest

from recbias.core.text import guard_messages, make_printable


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
