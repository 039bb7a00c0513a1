"""The functions that differ between systems work where a feature is absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recbias.cli.results import find_run
from recbias.runner.operating_system import (
    follow_link,
    is_running,
    measure_peak_memory_mb,
    point_link,
)
from support.commands import invoke_recbias, write_small_spec


def test_a_process_is_found_by_its_number() -> None:
    assert is_running(os.getpid())
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert not is_running(process.pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_a_process_that_ended_but_was_not_asked_does_not_run() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(process.pid)


def test_windows_is_not_asked_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(pid: int, signal: int) -> None:
        raise AssertionError

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", interrupt)
    assert is_running(12)


@pytest.mark.parametrize("error", [OSError, NotImplementedError])
def test_without_symbolic_links_a_run_is_found_by_its_name(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: str) -> None:
        raise error

    monkeypatch.setattr(Path, "symlink_to", refuse)
    finished = invoke_recbias("run", write_small_spec(tmp_path), "--quiet", folder=tmp_path)
    assert finished.code == 0, finished.err
    latest = tmp_path / "results" / "small" / "latest"
    assert latest.is_file()
    folder = find_run("small", tmp_path / "results")
    assert folder.name == latest.read_text(encoding="utf-8")
    assert invoke_recbias("report", "small", folder=tmp_path).code == 0


def test_a_link_is_replaced(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_link(tmp_path / "latest", name, scratch=tmp_path_factory.mktemp("scratch"))
        assert (tmp_path / "latest").resolve() == tmp_path / name
    assert follow_link(tmp_path / "latest") == tmp_path / "latest"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "one", "two"]


def test_without_the_module_resource_the_memory_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Path, encoding: str) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)  # no /proc
    assert measure_peak_memory_mb() > 1
    monkeypatch.setitem(sys.modules, "resource", None)
    assert measure_peak_memory_mb() == 0.0


GROWING = """
import subprocess
import sys

import numpy as np
from recbias.runner.operating_system import measure_peak_memory_mb, reset_peak_memory
reset_peak_memory()
before = measure_peak_memory_mb()
array = np.ones(64 * 2**20 // 8)
peak = measure_peak_memory_mb()
del array
reset_peak_memory()
print(before, peak, measure_peak_memory_mb())
"""


def test_peak_memory_grows_with_allocations_and_can_be_reset() -> None:
    """In a new process: this one may reuse memory that it has freed."""
    process = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, check=True)
    before, peak, after = map(float, process.stdout.split())
    assert peak > before + 50
    assert after <= peak
