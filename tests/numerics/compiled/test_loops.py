from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.kernels.sparse import compile_loop


def add_up(values: Any) -> Any:
    total = 0.0
    for index in range(values.size):
        total += values[index]
    return total


def test_compiled_loop_matches_the_python_function() -> None:
    values = np.arange(10.0)
    assert compile_loop(add_up)(values) == add_up(values) == 45
    assert compile_loop(add_up) is compile_loop(add_up)


def test_nan_and_infinity_are_preserved() -> None:
    assert np.isnan(compile_loop(add_up)(np.array([1.0, np.nan])))
    assert compile_loop(add_up)(np.array([1.0, np.inf])) == np.inf


def test_function_without_a_file_is_compiled_without_cache() -> None:
    # code that does not come from a file has no cache folder
    namespace: dict[str, Any] = {}
    exec(compile("def twice(x):\n    return 2 * x\n", "<nowhere>", "exec"), namespace)
    assert compile_loop(namespace["twice"])(4) == 8


LOOP = """
import numpy as np
import pytest
from recbias.kernels.sparse import compile_loop

def add_up(values):
    total = 0.0
    for index in range(values.size):
        total += values[index]
    return total

print(compile_loop(add_up)(np.arange(10.0)))
"""


@pytest.mark.slow
def test_corrupt_cache_files_are_ignored(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP, encoding="utf-8")

    def run() -> str:
        # only a new process reads the cache
        process = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    assert run() == "45.0"
    cache_files = sorted((tmp_path / "__pycache__").glob("*.nb?"))
    assert {path.suffix for path in cache_files} == {".nbc", ".nbi"}
    for path in cache_files:
        content = path.read_bytes()
        for broken in (b"", content[: len(content) // 2]):
            path.write_bytes(broken)
            assert run() == "45.0"
        path.write_bytes(content)
