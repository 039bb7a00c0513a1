"""Limits on the memory of a process (``ulimit -v``): one error that says so, and no hanging."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.faults.samples import CONTROLS, TRIES_ALL
from support.specs import make_small_spec

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="macOS does not keep the limit")

MEGABYTE = 2**20
SECONDS = 60.0
"""How long a command may take; it takes less than five where no other tests run beside it."""


def run_limited(folder: Path, megabytes: int, *words: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(
        [sys.executable, "-m", "recbias", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=limit,
    )


def validate_memory_error(folder: Path, errors: str) -> None:
    lines = errors.splitlines()
    assert "Traceback" not in errors
    assert not CONTROLS.search(errors.replace("\n", ""))
    assert sum(line.startswith(("error: ", "failed: ")) for line in lines) >= 1, errors
    assert "memory" in errors
    assert any(line.startswith("help: ") and "ulimit -v" in line for line in lines), errors
    assert not [*folder.glob("results/store/tmp/*")]
    assert not [*folder.glob("results/*/*/manifest.json")]


LIMITS = (
    [30, 100, 200, 300, 400, 450, 500, 520, 560, 600, 700, 900, 1100]
    if TRIES_ALL
    else [30, 300, 700]
)


@pytest.mark.parametrize("megabytes", LIMITS)
@pytest.mark.parametrize("options", [(), ("--workers", "2")][: 2 if TRIES_ALL else 1])
def test_too_low_limits_are_refused(
    tmp_path: Path, megabytes: int, options: tuple[str, ...]
) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(make_small_spec(models=["MostPop"])))
    start = time.monotonic()
    process = run_limited(tmp_path, megabytes, "run", "spec.json", *options)
    assert process.returncode in (1, 2)
    assert time.monotonic() - start < SECONDS
    validate_memory_error(tmp_path, process.stderr)


def test_models_of_torch_need_more(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(make_small_spec(models=["MultiVAE"])))
    process = run_limited(tmp_path, 1900, "run", "spec.json")
    assert process.returncode == 2
    assert "each process may use 1,900 MB (ulimit -v), and needs at least 2," in process.stderr
    validate_memory_error(tmp_path, process.stderr)


HUNGRY = """
import ctypes
from dataclasses import dataclass

import numpy as np

from recbias.models.neighbours.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Hungry(ItemKNN):
    def fit(self, data, rng):
        {statement}
"""

DEMANDS = {
    "an array": ("np.ones(2**30)", 2),
    "many arrays": ("self.__dict__['all'] = [np.ones(2**n) for n in range(40)]", 2),
    "threads": (
        "import threading as t; [t.Timer(3, int).start() for _ in range(10**5)]",
        2,
    ),
    "C++ ends the process": ("ctypes.CDLL(None).abort()", -6),
    "OpenBLAS ends the process": ("ctypes.CDLL(None).exit(1)", 1),
}
"""Statements that need too much memory, or do what libraries do then; with the exit code."""


SAMPLE = DEMANDS if TRIES_ALL else ["an array", "threads", "OpenBLAS ends the process"]


@pytest.mark.parametrize("name", SAMPLE)
def test_exhausted_memory_is_said(tmp_path: Path, name: str) -> None:
    statement, code = DEMANDS[name]
    (tmp_path / "own.py").write_text(HUNGRY.format(statement=statement))
    (tmp_path / "spec.json").write_text(json.dumps(make_small_spec(models=["./own.py:Hungry"])))
    process = run_limited(tmp_path, 1500, "run", "spec.json", "-q")
    assert process.returncode == code, process.stderr
    validate_memory_error(tmp_path, process.stderr)


def test_an_ordinary_end_has_no_such_line(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(make_small_spec(models=["MostPop"])))
    process = run_limited(tmp_path, 1500, "run", "spec.json", "-q")
    assert (process.returncode, process.stderr) == (0, "")
