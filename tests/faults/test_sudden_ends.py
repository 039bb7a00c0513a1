"""Libraries that end the process of a command: one error, and an exit code of the contract."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from support.faults.samples import CONTROLS, TRIES_ALL
from support.specs import make_small_spec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

OWN = """
import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from recbias.models.neighbours.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Own(ItemKNN):
    def fit(self, data, rng):
        Path(__file__).with_name("fitting").write_text(str(os.getpid()))
        {statement}
        return super().fit(data, rng)
"""

ENDS = {
    "abort": ("os.abort()", "signal 6"),
    "a fault of memory": ("ctypes.string_at(0)", "signal 11"),
    "exit code 127": ("os._exit(127)", "exit code 127"),
    "exit code 0": ("os._exit(0)", "exit code 0"),
    "killed": ("os.kill(os.getpid(), 9)", "signal 9"),
}
"""What libraries do, and how it is said."""


def write_spec(folder: Path, statement: str) -> tuple[str, ...]:
    (folder / "own.py").write_text(OWN.format(statement=statement))
    spec = make_small_spec(models=["MostPop", "./own.py:Own"])
    (folder / "spec.json").write_text(json.dumps(spec))
    return (sys.executable, "-m", "recbias", "run", "spec.json", "-q")


@pytest.mark.parametrize("workers", ["1", "2"] if TRIES_ALL else ["1"])
@pytest.mark.parametrize("end", ENDS if TRIES_ALL else ["abort"])
def test_a_library_that_ends_the_process_is_said(tmp_path: Path, end: str, workers: str) -> None:
    statement, how = ENDS[end]
    command = [*write_spec(tmp_path, statement), "--workers", workers]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert process.returncode == 1, process.stderr
    lines = process.stderr.splitlines()
    assert sum(line.startswith(("error: ", "failed: ")) for line in lines) == 1
    assert how in process.stderr or workers == "2"
    assert any(line.startswith("help: ") for line in lines)
    assert "Traceback" not in process.stderr
    assert not CONTROLS.search(process.stderr.replace("\n", ""))
    write_spec(tmp_path, "")
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (again.returncode, again.stderr) == (0, "")


def start_waiting(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a run that waits in a model; return it, and the process that waits."""
    process = subprocess.Popen(
        write_spec(folder, "import time; [time.sleep(0.01) for _ in range(10**5)]"),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    path = folder / "fitting"
    while process.poll() is None and not (path.exists() and path.read_text()):
        time.sleep(0.01)
    return process, int(path.read_text())


@pytest.mark.rotating
@pytest.mark.parametrize("is_terminal", [False, True])
def test_one_signal_arrives_once(tmp_path: Path, is_terminal: bool) -> None:
    process, _ = start_waiting(tmp_path)
    start = time.monotonic()
    (os.killpg if is_terminal else os.kill)(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "interrupted: run the same command again to resume\n"
    assert time.monotonic() - start < 30


@pytest.mark.rotating
def test_the_command_ends_with_the_process_that_the_user_started(tmp_path: Path) -> None:
    process, command = start_waiting(tmp_path)
    process.kill()
    process.communicate(timeout=60)  # until the command has closed standard error
    end = time.monotonic() + 30
    with suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(command, 0)
            time.sleep(0.01)
    assert not Path(f"/proc/{command}").exists()
