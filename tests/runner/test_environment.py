from __future__ import annotations

import subprocess
import sys

import numpy as np

from recbias.runner.environment import describe_environment


def test_the_environment_lists_library_versions() -> None:
    environment = describe_environment()
    assert environment["python"]
    assert isinstance(environment["libraries"], dict)
    assert environment["libraries"]["numpy"] == np.__version__


GROWING = """
import subprocess
import sys

import numpy as np
from recbias.runner.environment import measure_peak_memory_mb, reset_peak_memory
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
