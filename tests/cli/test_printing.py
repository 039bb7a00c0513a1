from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from recbias.cli.output import print_line, print_table, print_text, report_errors
from recbias.core.errors import Faults, MissingFile, StageError, UserError
from support.commands import SMALL, invoke_recbias, run_recbias, write_small_spec
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


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (MissingFile("no file", where="a", remedy="b"), 2, ["error: a: no file", "help: b"]),
        (Faults([UserError("x"), UserError("y")]), 2, ["error: x", "error: y"]),
        (StageError("fit failed"), 1, ["error: fit failed"]),
        (UserError("a\nerror: b\x1b[2J"), 2, [r"error: a\nerror: b\x1b[2J"]),
        (StageError("x", traceback="T\nerror: y\x07"), 1, ["  T", r"  error: y\x07", "error: x"]),
    ],
)
def test_errors_have_lines_and_exit_codes(
    error: Exception, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, report_errors():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err.splitlines() == lines


def test_interrupt_explains_how_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, report_errors():
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130
    assert "to resume" in capsys.readouterr().err


def test_bug_asks_to_be_reported(tmp_path: Path) -> None:
    script = "from recbias.cli.output import report_errors\nwith report_errors():\n    1 / 0\n"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 1
    assert "ZeroDivisionError" in result.stderr
    assert "please report it" in result.stderr


def test_bug_message_cannot_imitate_an_error_line(tmp_path: Path) -> None:
    raised = r'raise ValueError("a\nerror: fake\x1b]0;x\x07")'
    script = f"from recbias.cli.output import report_errors\nwith report_errors():\n    {raised}\n"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 1
    assert r"error: fake\x1b]0;x\x07" in result.stderr
    assert [line for line in result.stderr.splitlines() if not line.startswith("  ")] == [
        "error: this is a bug in recbias; please report it with the lines above"
    ]


@pytest.mark.parametrize(
    "arguments",
    [("list", "models"), ("run", "small.yaml", "--quiet", "--set", "metrics=[nDCG]")],
    ids=" ".join,
)
def test_closed_pipe_is_no_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_small_spec(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # before the first output
    with process.stderr:
        errors = process.stderr.read()
    assert (process.wait(60), errors) == (0, "")


def test_closed_pipe_keeps_the_exit_code_of_a_failed_check(tmp_path: Path) -> None:
    write_small_spec(tmp_path, f"{SMALL}checks: [{{metric: nDCG, at_least: 0.99}}]\n")
    words = ("run", "small.yaml", "small.yaml", "--quiet", "--fresh")
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    process.stdout.close()  # before the first output
    assert process.wait(120) == 3
    assert len([*(tmp_path / "results" / "small").glob("*-*")]) == 2  # the second spec, too


def run_shell(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit code and the standard error of a command with its redirections."""
    line = f"exec {sys.executable} -m recbias {command}"
    result = subprocess.run(["sh", "-c", line], cwd=folder, stderr=subprocess.PIPE, text=True)
    return result.returncode, result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    "command",
    ["list models", "--help", "run small.yaml --quiet --set 'metrics=[nDCG]'"],
)
def test_full_output_disk_is_reported_in_one_line(tmp_path: Path, command: str) -> None:
    write_small_spec(tmp_path)
    message = "error: the output cannot be written: No space left on device\n"
    assert run_shell(f"{command} > /dev/full", tmp_path) == (1, message)
    assert run_shell(f"{command} > /dev/full 2> /dev/full", tmp_path) == (1, "")


@pytest.mark.parametrize(
    "command",
    ["list models", "--help", "run small.yaml --quiet --set 'metrics=[nDCG]'"],
)
def test_closed_output_is_no_error(tmp_path: Path, command: str) -> None:
    write_small_spec(tmp_path)
    assert run_shell(f"{command} >&-", tmp_path) == (0, "")
    assert run_shell(f"{command} >&- 2>&-", tmp_path) == (0, "")


def test_exhausted_memory_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, report_errors():
        raise MemoryError
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.startswith("error: out of memory\nhelp: ")


def test_characters_that_the_encoding_of_the_output_lacks_are_escaped(tmp_path: Path) -> None:
    write_small_spec(tmp_path)
    env = {"PYTHONIOENCODING": "ascii"}
    result = run_recbias("run", "small.yaml", folder=tmp_path, env=env)
    assert result.code == 0
    assert "Traceback" not in result.err
    assert "model" in result.out


def test_a_question_without_standard_input_names_the_option(tmp_path: Path) -> None:
    write_small_spec(tmp_path)
    assert invoke_recbias("run", "small.yaml", folder=tmp_path).code == 0
    command = f"exec {sys.executable} -m recbias clean <&-"
    ended = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.endswith("help: add --yes\n")
    assert "Traceback" not in ended.stderr
