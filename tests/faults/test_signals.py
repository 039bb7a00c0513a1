"""Ctrl-C, SIGTERM and a closed terminal at seeded moments: one line, a code, no process left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.faults.samples import CONTROLS, TRIES_ALL, choose_seeds
from support.specs import make_small_spec

LINES = {
    signal.SIGINT: "interrupted: run the same command again to resume\n",
    signal.SIGTERM: "terminated: run the same command again to resume\n",
    signal.SIGHUP: "the terminal was closed: run the same command again to resume\n",
}
SECONDS = 2.0 if TRIES_ALL else 30.0
"""How long the processes may take to end; more where other tests run beside this one."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def is_handling(pid: int, number: int) -> bool:
    """Return whether a process has a handler of its own for a signal."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def list_session(pid: int) -> list[str]:
    """Return the commands of the processes of a session that have not ended."""
    commands = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, IndexError):
            if folder.name.isdecimal():
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == pid and fields[0] != "Z":
                    commands.append((folder / "cmdline").read_text().replace("\0", " "))
    return commands


@contextmanager
def start_run(
    folder: Path, *options: str, models: Sequence[str] = ("MostPop", "ItemKNN", "Random", "EASE")
) -> Iterator[subprocess.Popen[str]]:
    spec = make_small_spec(models=models)
    (folder / "spec.json").write_text(json.dumps(spec))
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", "run", "spec.json", "-q", *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("seed", choose_seeds(1, 200))
def test_a_signal_ends_every_process_with_one_line(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    number = list(LINES)[seed % 3]
    workers = rng.choice(["1", "2", "2"])
    with start_run(tmp_path, "--workers", workers) as process:
        while not is_handling(process.pid, signal.SIGHUP) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 4) * rng.random())
        send = os.killpg if rng.random() < 0.7 else os.kill  # a terminal, or another program
        is_running = process.poll() is None
        with suppress(ProcessLookupError):
            send(process.pid, number)
        end = time.monotonic() + SECONDS
        while (left := list_session(process.pid)) and time.monotonic() < end:
            time.sleep(0.01)
            process.poll()
        assert not left
        _, errors = process.communicate(timeout=60)
    # a signal after the last line of the command ends Python itself, or comes too late
    lines = {0: "", -number: "", 128 + number: LINES[number]}
    assert errors == lines.get(process.returncode), (number, process.returncode)
    assert is_running or process.returncode == 0
    assert not CONTROLS.search(errors)
    for run in (tmp_path / "results").glob("spec/[!.]*"):
        assert (run / "manifest.json").is_file()


COMPILED = """
import hashlib
from dataclasses import dataclass
from pathlib import Path

from recbias.models.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Deaf(ItemKNN):
    def fit(self, data, rng):
        Path(__file__).with_name("fitting").touch()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""
"""A model whose training is compiled code, which no exception interrupts for half an hour."""


def test_a_signal_ends_compiled_code(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(COMPILED)
    with start_run(tmp_path, models=["./own.py:Deaf"]) as process:
        while not (tmp_path / "fitting").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert errors == LINES[signal.SIGTERM]
    assert process.returncode == 143
