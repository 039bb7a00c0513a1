from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from recbias.core.errors import TooLittleMemory, WrongType
from recbias.core.machine import VARIABLE, lock_file, measure_memory_limit, require_memory
from recbias.runs.tables import find_run
from support.commands import invoke_recbias, write_small_spec


def test_the_limit_is_at_most_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < measure_memory_limit() <= machine


def test_a_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    program = (
        "from recbias.core.machine import measure_memory_limit\nprint(measure_memory_limit())"
    )
    limit = 300 * 2**20
    process = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
        text=True,
    )
    assert int(process.stdout) == limit


@pytest.mark.parametrize("stated", ["abc", "-1", "1e3", "0", "1.5", " "])
def test_a_variable_that_is_no_number_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str
) -> None:
    monkeypatch.setenv(VARIABLE, stated)
    with pytest.raises(WrongType):
        measure_memory_limit()
    spec = "name: x\ndataset: demo\nsplit: {name: random, test: 0.2}\nmodels: [EASE]\n"
    (tmp_path / "x.yaml").write_text(spec + "metrics: [HR]\n", encoding="utf-8")
    result = invoke_recbias("plan", "x.yaml", folder=tmp_path)
    assert result.code == 2
    assert f"the environment variable {VARIABLE} is {stated!r}" in result.err
    assert "help: set it to a whole number of MB above 0" in result.err


def test_what_does_not_fit_is_refused_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "100")
    require_memory(100 * 2**20, "5 users", where="n_users", remedy="lower n_users")
    with pytest.raises(TooLittleMemory) as caught:
        require_memory(3 * 2**30, "5 users", where="n_users", remedy="lower n_users")
    assert caught.value.lines() == [
        "error: n_users: 5 users need at least 3.0 GB, and there are 100 MB",
        "help: lower n_users",
    ]


def test_without_symbolic_links_a_run_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: str) -> None:
        raise OSError

    monkeypatch.setattr(Path, "symlink_to", refuse)
    finished = invoke_recbias("run", write_small_spec(tmp_path), "--quiet", folder=tmp_path)
    assert finished.code == 0, finished.err
    latest = tmp_path / "results" / "small" / "latest"
    assert latest.is_file()
    folder = find_run("small", tmp_path / "results")
    assert folder.name == latest.read_text(encoding="utf-8")
    assert invoke_recbias("report", "small", folder=tmp_path).code == 0


GROWING = """
import subprocess
import sys

import numpy as np
from recbias.core.machine import measure_peak_memory_mb, reset_peak_memory
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


def test_a_locked_file_is_not_locked_again(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with (tmp_path / "file").open("w") as first, (tmp_path / "file").open("w") as second:
        lock_file(first.fileno())
        with pytest.raises(BlockingIOError):
            lock_file(second.fileno(), waits=False)
