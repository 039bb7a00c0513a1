"""The limit of memory, and sizes that are beyond it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from recbias.core.errors import TooLittleMemory
from recbias.core.machine.memory import VARIABLE, measure_memory_limit, require_memory


def test_the_limit_is_at_most_the_memory_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < measure_memory_limit() <= machine


def test_a_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    program = (
        "from recbias.core.machine.memory import measure_memory_limit\n"
        "print(measure_memory_limit())"
    )
    limit = 300 * 2**20
    process = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
        text=True,
    )
    assert int(process.stdout) == limit


@pytest.mark.parametrize(("stated", "is_taken"), [("7", True), ("0", False), ("many", False)])
def test_a_variable_states_the_limit(
    monkeypatch: pytest.MonkeyPatch, stated: str, is_taken: bool
) -> None:
    monkeypatch.setenv(VARIABLE, stated)
    assert (measure_memory_limit() == 7 * 2**20) == is_taken


def test_what_does_not_fit_is_refused_with_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "100")
    require_memory(100 * 2**20, "5 users", where="n_users", remedy="lower n_users")
    with pytest.raises(TooLittleMemory) as caught:
        require_memory(3 * 2**30, "5 users", where="n_users", remedy="lower n_users")
    assert caught.value.lines() == [
        "error: n_users: 5 users need at least 3.0 GB, and there are 100 MB",
        "help: lower n_users",
    ]
