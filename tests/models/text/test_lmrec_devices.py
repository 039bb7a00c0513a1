"""LMRec trained by two processes, from the command line: interrupted, resumed, reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.machine import count_cores
from support.files.review_files import (
    ENCODER_WORDS,
    TEMPLATES,
    make_reviews,
    make_venue,
    write_reviews,
)
from support.models.small_encoder import write_small_encoder

SPEC: dict[str, Any] = {
    "name": "two",
    "dataset": {"name": "yelp", "folder": "reviews"},
    "split": {"name": "random", "per": "item", "test": 0.2},
    "queries": {"name": "templates", "templates": "mine.yaml"},
    "k": 4,
    "models": [
        {
            "name": "LMRec",
            "encoder": "encoder",
            "pooling": "mean",
            "batch_size": 16,
            "epochs": 40,
            "max_length": 40,
            "device": "cpu",
            "devices": 2,
        }
    ],
    "metrics": ["class_accuracy"],
    "report": {"formats": ["md"]},
}


def write_world(folder: Path) -> None:
    write_reviews(folder / "data", [make_venue(venue) for venue in range(6)], make_reviews())
    (folder / "mine.yaml").write_text(TEMPLATES)
    write_small_encoder(folder / "encoder", ENCODER_WORDS)
    (folder / "two.json").write_text(json.dumps(SPEC))


def list_processes(group: int) -> list[int]:
    """Return the processes of a group that run."""
    numbers = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(process_group) == group and state != "Z":
            numbers.append(int(path.parent.name))
    return numbers


@pytest.mark.slow  # two trainings in two processes
@pytest.mark.skipif(sys.platform != "linux", reason="lists processes by /proc")
@pytest.mark.skipif(count_cores() < 2, reason="two processes need two cores")
def test_ctrl_c_ends_all_processes_and_the_same_command_resumes(tmp_path: Path) -> None:
    write_world(tmp_path)
    words = [sys.executable, "-m", "recbias", "run", "two.json", "--data", "data", "--offline"]
    process = subprocess.Popen(
        words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    partial = tmp_path / "results" / "store" / "partial"
    deadline = time.monotonic() + 200
    while not [*partial.glob("*")] and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(list_processes(process.pid)) >= 3
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.rstrip().endswith("interrupted: run the same command again to resume")
    assert "Traceback" not in error
    time.sleep(0.5)
    assert list_processes(process.pid) == []

    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    run = recbias.load(tmp_path / "results" / "two" / "latest")
    manifest = json.loads((run.folder / "manifest.json").read_text())
    (model,) = manifest["models"]
    assert (model["device"], model["devices"]) == ("cpu", 2)
    (fit,) = [stage for stage in manifest["stages"] if stage["stage"] == "fit LMRec"]
    assert fit["resumed_seconds"] > 0
    assert "2 x cpu, float32" in (run.folder / "report.md").read_text()
