"""Where and with what a run was made."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from recbias.runner.stage import library_version

LIBRARIES = (
    *("numpy", "scipy", "pandas", "pyarrow", "pydantic", "scikit-learn"),
    *("implicit", "lenskit", "numba", "optuna", "torch", "transformers"),
)
"""Packages whose versions the manifest names."""


def environment() -> dict[str, object]:
    """Return versions, commit and platform, as the manifest has them."""
    return {
        "recbias": version("recbias"),
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: library_version(name) for name in LIBRARIES},
    }


def commit() -> str | None:
    """Return the commit of the checkout that recbias runs from, None where it is installed."""
    top = Path(__file__).parents[3]
    if not (top / ".git").exists():
        return None
    command = ["git", "-C", str(top), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603  fixed words
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def peak_memory_mb() -> float:
    """Return the peak memory of this process since ``forget_peak``, in MB."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except (OSError, ValueError):
        pass
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024 if sys.platform != "darwin" else kilobytes / 1024**2


def forget_peak() -> None:
    """Start the peak anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return
