from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from recbias.cli.printing import print_line, print_table, print_text
from support.commands import invoke_recbias, write_small_spec
from support.screen import run_in_terminal

EVIL = "a\nerror: fake:1:1: x\x1b]0;x\x07\x9b2J\u202e"
PLAIN = r"a\nerror: fake:1:1: x\x1b]0;x\x07\x9b2J\u202e"


def test_line_has_no_line_ends(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(EVIL)
    print_line(EVIL, to_stderr=True)
    print_line("x" * 5000)
    print_line("x" * 5000, longest=None)
    captured = capsys.readouterr()
    assert captured.err == PLAIN + "\n"
    assert [len(line) for line in captured.out.split("\n")] == [len(PLAIN), 1000, 5000, 0]


def test_text_has_its_lines_and_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_text("one\n\n  two\x1b[2J\rthree")
    assert capsys.readouterr().out == "one\n\n  two\\x1b[2J\\rthree\n"


def test_table_is_escaped_in_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_table('id,"a\x1b"\n')
    assert capsys.readouterr().out == 'id,"a\x1b"\n'
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        print_table('id,"a\x1b"\n')
        terminal.flush()
        assert os.read(master, 100) == b'id,"a\\x1b"\r\n'
    os.close(master)


SPECS = [
    ('"a\\nerror: fake:1:1: x": 1\n', r"a\nerror: fake"),
    ('"\\e]0;x\\a": 1\n', r"\x1b]0;x\x07"),
    ('dataset: "\\e]0;x\\a\\nerror: fake:1:1: x"\n', r"\x1b]0;x\x07"),
    (f'dataset: "{"k" * 100_000}"\n', "left out"),
]


@pytest.mark.parametrize(("text", "message"), SPECS, ids=["key", "terminal", "value", "long"])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_spec_cannot_imitate_an_error_line(
    tmp_path: Path, text: str, message: str, command: str
) -> None:
    result = invoke_recbias(
        command, write_small_spec(tmp_path, f"name: a\n{text}"), folder=tmp_path
    )
    assert result.code == 2
    lines = result.err.splitlines()
    assert not [line for line in lines if line.startswith("error: fake")]
    assert all(line.startswith(("error: ", "help: ")) for line in lines)
    assert all(line.isprintable() and len(line) <= 1000 for line in lines)
    assert message in result.err


def write_hostile_tables(folder: Path) -> Path:
    """Write a spec over tables with control characters in their cells and headers."""
    users = "".join(f"{user},\x1b]0;x\x07\n" for user in range(20))
    (folder / "users.csv").write_text(f"user_id,g\x1b[2J\n{users}")
    rows = [f"{user},{item}\n" for user in range(20) for item in range(user % 3, 20, 3)]
    (folder / "rows.csv").write_text("user_id,item_id\n" + "".join(rows))
    return write_small_spec(
        folder,
        """\
name: hostile
dataset: {name: tables, interactions: rows.csv, users: users.csv}
split: {name: random, test: 0.2}
k: 3
models: [MostPop]
metrics: [nDCG]
report: {formats: [csv]}
""",
    )


def test_terminal_gets_no_control_characters_from_tables(tmp_path: Path) -> None:
    spec = write_hostile_tables(tmp_path)
    for command in (("run", spec, "-v"), ("plan", spec), ("data", "describe", spec)):
        code, screen = run_in_terminal(*command, folder=tmp_path, width=120)
        assert code == 0, screen.text()
        assert screen.strange == []
    assert r"g\x1b[2J" in "".join(screen.text())
    assert r"\x1b]0;x\x07" in "".join(screen.text())
