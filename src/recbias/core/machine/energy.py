"""Counters of energy: those of processors (RAPL, on Linux) and of NVIDIA cards (NVML)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

POWERCAP = Path("/sys/class/powercap")
"""Where Linux has the counters of the packages of processors; only root may read some of them."""

MOST_WATTS = 500.0
"""The power of a package beyond which no counter is expected to run."""


class Counter(NamedTuple):
    """The joules of a package since some time, and the joules at which the counter restarts."""

    joules: float
    range: float


def read_packages(folder: Path = POWERCAP) -> dict[str, Counter]:
    """Return the counters of the packages of processors; empty if the machine does not tell."""
    counters = {}
    for path in sorted(folder.glob("intel-rapl:*")):
        with suppress(OSError, ValueError):
            if (path / "name").read_text(encoding="ascii").startswith("package"):
                joules, most = (
                    int((path / name).read_text(encoding="ascii")) / 1e6
                    for name in ("energy_uj", "max_energy_range_uj")
                )
                counters[path.name] = Counter(joules, most)
    return counters


def subtract_packages(
    end: Mapping[str, Counter], start: Mapping[str, Counter], seconds: float
) -> float | None:
    """Return the joules of all packages between two readings; None if they are not known.

    They are not if a counter may have restarted twice.

    >>> subtract_packages({"a": Counter(5.0, 1e5)}, {"a": Counter(99_998.0, 1e5)}, 10.0)
    7.0
    """
    if not end or end.keys() != start.keys():
        return None
    if any(counter.range < MOST_WATTS * seconds for counter in end.values()):
        return None
    return sum((end[name].joules - start[name].joules) % end[name].range for name in end)


@cache
def _load_library() -> Any:
    """Return NVIDIA's library, initialised; None on a machine without it."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() == 0:
            return library
    return None


def read_card(uuid: str) -> float | None:
    """Return the joules of a card since its driver was loaded; None if it does not tell.

    Args:
        uuid: As NVIDIA writes it: ``GPU-8a0c...``.
    """
    library, handle, millijoules = _load_library(), ctypes.c_void_p(), ctypes.c_ulonglong()
    if library is None:
        return None
    if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
        return None
    if library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(millijoules)):
        return None
    return millijoules.value / 1000
