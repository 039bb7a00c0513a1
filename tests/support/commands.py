"""The command line as a person runs it: a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from recbias.cli.app import app


@dataclass(frozen=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str


def recbias(*words: object, folder: Path, env: Mapping[str, str] | None = None) -> Said:
    """Run ``recbias`` in a folder and wait for it."""
    command = [sys.executable, "-m", "recbias", *map(str, words)]
    inherited = {name: each for name, each in os.environ.items() if name != "RECBIAS_DATA"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def inside(*words: object, folder: Path) -> Said:
    """Run ``recbias`` in a folder without a process of its own, which is faster."""
    hook = sys.excepthook
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, [*map(str, words)], env={"RECBIAS_DATA": None})
    sys.excepthook = hook
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Said(done.exit_code, done.stdout, done.stderr)


SMALL = """\
name: small
dataset: {name: demo, n_users: 80, n_items: 60}
split: {name: random, test: 0.2}
k: 5
models: [Random, MostPop, ItemKNN]
metrics: [nDCG, HR, ItemCoverage]
tests: [paired_t]
"""


def small_spec(folder: Path, text: str = SMALL, name: str = "small.yaml") -> Path:
    """Write a spec that runs in a second."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
