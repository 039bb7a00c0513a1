from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import invoke_recbias, write_small_spec
from support.screen import run_in_terminal

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
