"""The software of the process, for the manifest of a run."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recbias.core.models.devices import is_cuda
from recbias.core.packages import is_installed
from recbias.runner.addresses import library_version

LIBRARIES = (
    *("numpy", "scipy", "pandas", "pyarrow", "pydantic", "scikit-learn"),
    *("implicit", "lenskit", "numba", "optuna", "torch", "transformers"),
)
"""Packages whose versions the manifest lists."""


def describe_environment() -> dict[str, Any]:
    """Return the versions, the commit and the platform of this run."""
    return {
        "recbias": version("recbias"),
        "commit": _find_commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: library_version(name) for name in LIBRARIES},
    }


def name_gpus(devices: Iterable[str]) -> dict[str, str]:
    """Return the product name of each device of CUDA, such as ``NVIDIA H200``."""
    cuda = sorted({device for device in devices if is_cuda(device)})
    if not cuda:
        return {}
    import torch

    return {device: torch.cuda.get_device_name(device) for device in cuda}


def measure_card() -> int:
    """Return the bytes of memory of the smallest GPU of CUDA, 0 if there is none."""
    if not is_installed("torch") or version("torch").endswith("+cpu"):
        return 0
    import torch

    numbers = range(torch.cuda.device_count())
    return min((torch.cuda.get_device_properties(n).total_memory for n in numbers), default=0)


def limit_card(share: float) -> None:
    """Limit this process to its share of the memory of a GPU, which it has with other tasks."""
    if not 0 < share < 1:
        return
    import torch

    if torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(share)


def _find_commit() -> str | None:
    """Return the git commit of the checkout that recbias runs from, None if it is installed."""
    checkout = Path(__file__).parents[3]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603  fixed words
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
