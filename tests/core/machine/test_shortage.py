from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from recbias.core.errors import DataError
from recbias.core.machine.shortage import describe_shortage, is_shortage

SHORTAGES = [
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    ImportError("libx.so: failed to map segment from shared object"),
    ImportError("libx.so: cannot allocate memory in static TLS block"),
    RuntimeError("can't start new thread"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory"),
]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: str(error)[:30])
def test_shortages_of_memory_are_recognized(error: Exception) -> None:
    assert is_shortage(error)
    hidden = ValueError("a library hides the cause")
    hidden.__context__ = error
    assert is_shortage(hidden)


@pytest.mark.parametrize(
    "error",
    [
        None,
        ModuleNotFoundError("No module named 'torch'"),
        OSError(errno.ENOENT, "No such file"),
        RuntimeError("shapes do not match"),
        ValueError("cannot allocate seats"),
    ],
)
def test_other_errors_are_none(error: Exception | None) -> None:
    assert not is_shortage(error)


def test_an_error_of_recbias_keeps_its_own_remedy() -> None:
    error = DataError("the file is too large")
    error.__cause__ = MemoryError()
    assert not is_shortage(error)


def test_the_line_of_the_shortage_is_shown_without_the_advice_of_a_library() -> None:
    error = ImportError("IMPORTANT: PLEASE READ THIS\nlibx.so: failed to map segment\nsee ...")
    message, remedy = describe_shortage(error)
    assert message.startswith("out of memory: libx.so: failed to map segment")
    assert "--workers" in remedy


def test_the_limit_of_the_process_is_named() -> None:
    resource = pytest.importorskip("resource")
    code = (
        "from recbias.core.machine.shortage import describe_shortage; print(*describe_shortage())"
    )
    limits = (1500 * 2**20,) * 2
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
    )
    assert "each process may use 1,500 MB" in process.stdout
    assert "ulimit -v" in process.stdout
