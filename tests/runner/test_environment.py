from __future__ import annotations

import subprocess
import sys

import numpy as np

from recbias.runner.environment import environment


def test_the_environment_names_versions_and_no_secret() -> None:
    found = environment()
    assert found["python"]
    assert isinstance(found["libraries"], dict)
    assert found["libraries"]["numpy"] == np.__version__


GROWING = """
import subprocess
import sys

import numpy as np
from recbias.runner.environment import forget_peak, peak_memory_mb
forget_peak()
before = peak_memory_mb()
held = np.ones(64 * 2**20 // 8)
grown = peak_memory_mb()
del held
forget_peak()
print(before, grown, peak_memory_mb())
"""


def test_the_peak_grows_with_what_is_held_and_can_be_forgotten() -> None:
    """In a process of its own: one with a past has memory at hand that it uses again."""
    done = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, check=True)
    before, grown, after = map(float, done.stdout.split())
    assert grown > before + 50
    assert after <= grown
