from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from recbias.cli.printing import print_line, print_table, print_text
from support.commands import inside, small_spec
from support.screen import shown

EVIL = "a\nerror: fake:1:1: x\x1b]0;x\x07\x9b2J\u202e"
PLAIN = r"a\nerror: fake:1:1: x\x1b]0;x\x07\x9b2J\u202e"


def test_a_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(EVIL)
    print_line(EVIL, to_stderr=True)
    print_line("x" * 5000)
    print_line("x" * 5000, longest=None)
    said = capsys.readouterr()
    assert said.err == PLAIN + "\n"
    assert [len(line) for line in said.out.split("\n")] == [len(PLAIN), 1000, 5000, 0]


def test_a_text_keeps_its_own_lines_only(capsys: pytest.CaptureFixture[str]) -> None:
    print_text("one\n\n  two\x1b[2J\rthree")
    assert capsys.readouterr().out == "one\n\n  two\\x1b[2J\\rthree\n"


def test_a_table_is_as_it_is_but_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_table('id,"a\x1b"\n')
    assert capsys.readouterr().out == 'id,"a\x1b"\n'
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        print_table('id,"a\x1b"\n')
        terminal.flush()
        assert os.read(ours, 100) == b'id,"a\\x1b"\r\n'
    os.close(ours)


SPECS = [
    ('"a\\nerror: fake:1:1: x": 1\n', r"a\nerror: fake"),
    ('"\\e]0;x\\a": 1\n', r"\x1b]0;x\x07"),
    ('dataset: "\\e]0;x\\a\\nerror: fake:1:1: x"\n', r"\x1b]0;x\x07"),
    (f'dataset: "{"k" * 100_000}"\n', "left out"),
]


@pytest.mark.parametrize(("text", "said"), SPECS, ids=["key", "terminal", "value", "long"])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_spec_forges_no_line(tmp_path: Path, text: str, said: str, command: str) -> None:
    done = inside(command, small_spec(tmp_path, f"name: a\n{text}"), folder=tmp_path)
    assert done.code == 2
    lines = done.err.splitlines()
    assert not [line for line in lines if line.startswith("error: fake")]
    assert all(line.startswith(("error: ", "help: ")) for line in lines)
    assert all(line.isprintable() and len(line) <= 1000 for line in lines)
    assert said in done.err


def hostile_tables(folder: Path) -> Path:
    """Write a spec over tables with control characters in their cells and headers."""
    users = "".join(f"{at},\x1b]0;x\x07\n" for at in range(20))
    (folder / "users.csv").write_text(f"user_id,g\x1b[2J\n{users}")
    rows = [f"{user},{item}\n" for user in range(20) for item in range(user % 3, 20, 3)]
    (folder / "rows.csv").write_text("user_id,item_id\n" + "".join(rows))
    return small_spec(
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


def test_a_terminal_gets_no_control_from_tables(tmp_path: Path) -> None:
    spec = hostile_tables(tmp_path)
    for words in (("run", spec, "-v"), ("plan", spec), ("data", "describe", spec)):
        code, screen = shown(*words, folder=tmp_path, width=120)
        assert code == 0, screen.text()
        assert screen.strange == []
    assert r"g\x1b[2J" in "".join(screen.text())
    assert r"\x1b]0;x\x07" in "".join(screen.text())
