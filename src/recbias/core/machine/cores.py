"""The cores of the CPU."""

from __future__ import annotations

import os
import sys


def count_cores() -> int:
    """Return the number of cores that this process may use, such as those of a SLURM job."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
