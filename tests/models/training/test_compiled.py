from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from recbias.models.training.compiled import compiled


def summed(values: Any) -> Any:
    total = 0.0
    for place in range(values.size):
        total += values[place]
    return total


def test_a_loop_gives_what_it_gives_uncompiled() -> None:
    values = np.arange(10.0)
    assert compiled(summed)(values) == summed(values) == 45
    assert compiled(summed) is compiled(summed)


def test_what_is_not_finite_stays_so() -> None:
    assert np.isnan(compiled(summed)(np.array([1.0, np.nan])))
    assert compiled(summed)(np.array([1.0, np.inf])) == np.inf


def test_what_cannot_be_kept_is_compiled_all_the_same() -> None:
    # code that comes from no file has no place beside it
    found: dict[str, Any] = {}
    exec(compile("def twice(x):\n    return 2 * x\n", "<nowhere>", "exec"), found)
    assert compiled(found["twice"])(4) == 8


LOOP = """
import numpy as np
from recbias.models.training.compiled import compiled

def summed(values):
    total = 0.0
    for place in range(values.size):
        total += values[place]
    return total

print(compiled(summed)(np.arange(10.0)))
"""


def test_broken_and_unwritable_caches_are_done_without(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP, encoding="utf-8")

    def result() -> str:
        # fresh processes, as only those read what is kept
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert result() == "45.0"
    kept = sorted((tmp_path / "__pycache__").glob("*.nb?"))
    assert {each.suffix for each in kept} == {".nbc", ".nbi"}
    for index in kept:
        whole = index.read_bytes()
        for broken in (b"", whole[: len(whole) // 2]):
            index.write_bytes(broken)
            assert result() == "45.0"
        index.write_bytes(whole)
