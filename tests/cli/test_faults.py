from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from recbias.cli.faults import report_errors
from recbias.core.errors import Faults, MissingFile, StageError, UserError
from support.commands import write_small_spec


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
    script = "from recbias.cli.faults import report_errors\nwith report_errors():\n    1 / 0\n"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 1
    assert "ZeroDivisionError" in result.stderr
    assert "please report it" in result.stderr


def test_bug_message_cannot_imitate_an_error_line(tmp_path: Path) -> None:
    raised = r'raise ValueError("a\nerror: fake\x1b]0;x\x07")'
    script = f"from recbias.cli.faults import report_errors\nwith report_errors():\n    {raised}\n"
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
    [("list", "models"), ("schema",), ("show", "ndcg"), ("run", "small.yaml", "--quiet")],
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


def run_shell(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit code and the standard error of a command with its redirections."""
    line = f"exec {sys.executable} -m recbias {command}"
    result = subprocess.run(["sh", "-c", line], cwd=folder, stderr=subprocess.PIPE, text=True)
    return result.returncode, result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    "command", ["list models", "schema", "--version", "--help", "run small.yaml --quiet"]
)
def test_full_output_disk_is_reported_in_one_line(tmp_path: Path, command: str) -> None:
    write_small_spec(tmp_path)
    message = "error: the output cannot be written: No space left on device\n"
    assert run_shell(f"{command} > /dev/full", tmp_path) == (1, message)
    assert run_shell(f"{command} > /dev/full 2> /dev/full", tmp_path) == (1, "")


@pytest.mark.parametrize(
    "command", ["list models", "--version", "--help", "run small.yaml --quiet"]
)
def test_closed_output_is_no_error(tmp_path: Path, command: str) -> None:
    write_small_spec(tmp_path)
    assert run_shell(f"{command} >&-", tmp_path) == (0, "")
    assert run_shell(f"{command} >&- 2>&-", tmp_path) == (0, "")
