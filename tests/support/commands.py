"""Running the command line in tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import typer.testing
from typer.main import get_command
from typer.testing import CliRunner

from recbias.cli.main import app

vars(typer.testing)["_get_command"] = cache(get_command)
"""Built once and not for each invocation, which takes as long as many of them."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def run_recbias(
    *words: object, folder: Path, env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run ``recbias`` in a folder as a process."""
    command = [sys.executable, "-m", "recbias", *map(str, words)]
    inherited = {name: value for name, value in os.environ.items() if name != "RECBIAS_DATA"}
    process = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


def invoke_recbias(
    *words: object, folder: Path, typed: str | None = None, env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run ``recbias`` in a folder within this process, which is faster."""
    hook = sys.excepthook
    with contextlib.chdir(folder):
        arguments = [*map(str, words)]
        variables = {"RECBIAS_DATA": None, **(env or {})}
        process = CliRunner().invoke(app, arguments, input=typed, env=variables)
    sys.excepthook = hook
    if process.exception is not None and not isinstance(process.exception, SystemExit):
        raise process.exception
    return CommandResult(process.exit_code, process.stdout, process.stderr)


SMALL = """\
name: small
dataset: {name: demo, n_users: 80, n_items: 60}
split: {name: random, test: 0.2}
k: 5
models: [Random, MostPop, ItemKNN]
metrics: [nDCG, HR, ItemCoverage]
tests: [paired_t]
"""
TABLES_ONLY = "report: {formats: [csv]}\n"


def write_small_spec(
    folder: Path, text: str = SMALL + TABLES_ONLY, name: str = "small.yaml"
) -> Path:
    """Write a spec that runs within a second."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
