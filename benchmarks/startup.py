"""CPU of commands that compute nothing, as a ratio to importing the libraries that they need.

Each round starts a fresh interpreter for every command and every reference in turn; the medians
of user and system CPU are compared, since other jobs of the machine change the time on the clock.

    python benchmarks/startup.py [--rounds 7] [--stored configs/ml-1m.yaml]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

CONFIGS = Path(__file__).parents[1] / "configs"
SMALL = ("-c", "import typer, rich.console")
LARGE = ("-c", "import numpy, pandas, pyarrow, scipy.sparse, typer, rich, yaml")


def measure_cpu(arguments: Sequence[str], folder: str) -> float:
    """Return the user and system CPU of an interpreter in seconds."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    message = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command} exits with {process.returncode}: {message.decode()}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stored", type=Path, help="A spec to run again with everything stored.")
    options = parser.parse_args()
    jobs = {
        "--help": (("--help",), SMALL),
        "plan quickstart": (("plan", str(CONFIGS / "quickstart.yaml")), LARGE),
    }
    if options.stored:
        jobs[f"run {options.stored.stem}, stored"] = (
            ("run", str(options.stored.resolve())),
            LARGE,
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, (words, reference) in jobs.items():
            command = ("-m", "recbias", *words)
            measure_cpu(command, folder)  # writes bytecode, and results to the store
            measure_cpu(reference, folder)
            pairs = [
                (measure_cpu(command, folder), measure_cpu(reference, folder))
                for _ in range(options.rounds)
            ]
            ours, theirs = (median(column) for column in zip(*pairs, strict=True))
            print(f"{name}: {ours:.3f} s, {reference[1]}: {theirs:.3f} s, {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
