from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from recbias.cli.faults import reported
from recbias.core.errors import Faults, MissingFile, StageError, UserError
from support.commands import small_spec


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
def test_errors_have_their_lines_and_exit_codes(
    error: Exception, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, reported():
        raise error
    assert caught.value.exit_code == code
    assert capsys.readouterr().err.splitlines() == lines


def test_an_interrupt_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, reported():
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130
    assert "to resume" in capsys.readouterr().err


def test_a_bug_asks_to_be_reported(tmp_path: Path) -> None:
    script = "from recbias.cli.faults import reported\nwith reported():\n    1 / 0\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "please report it" in done.stderr


def test_a_bug_forges_no_line(tmp_path: Path) -> None:
    raised = r'raise ValueError("a\nerror: fake\x1b]0;x\x07")'
    script = f"from recbias.cli.faults import reported\nwith reported():\n    {raised}\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert r"error: fake\x1b]0;x\x07" in done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("  ")] == [
        "error: this is a bug in recbias; please report it with the lines above"
    ]


@pytest.mark.parametrize(
    "words",
    [("list", "models"), ("schema",), ("show", "ndcg"), ("run", "small.yaml", "--quiet")],
    ids=" ".join,
)
def test_a_reader_that_went_away_is_no_fault(tmp_path: Path, words: tuple[str, ...]) -> None:
    small_spec(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # before anything is written
    with process.stderr:
        said = process.stderr.read()
    assert (process.wait(60), said) == (0, "")


def shell(command: str, folder: Path) -> tuple[int, str]:
    """Return the exit code and the standard error of a command with its redirections."""
    line = f"exec {sys.executable} -m recbias {command}"
    done = subprocess.run(["sh", "-c", line], cwd=folder, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    "words", ["list models", "schema", "--version", "--help", "run small.yaml --quiet"]
)
def test_a_full_disk_behind_the_output_is_one_line(tmp_path: Path, words: str) -> None:
    small_spec(tmp_path)
    said = "error: the output cannot be written: No space left on device\n"
    assert shell(f"{words} > /dev/full", tmp_path) == (1, said)
    assert shell(f"{words} > /dev/full 2> /dev/full", tmp_path) == (1, "")


@pytest.mark.parametrize("words", ["list models", "--version", "--help", "run small.yaml --quiet"])
def test_a_closed_output_is_no_fault(tmp_path: Path, words: str) -> None:
    small_spec(tmp_path)
    assert shell(f"{words} >&-", tmp_path) == (0, "")
    assert shell(f"{words} >&- 2>&-", tmp_path) == (0, "")
