from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import recbias
from recbias.core.machine import count_cores
from support.commands import run_recbias
from support.files.review_files import (
    ENCODER_WORDS,
    TEMPLATES,
    make_reviews,
    make_venue,
    write_reviews,
)
from support.models.small_encoder import write_small_encoder

SPEC = """\
name: x
dataset: {{name: demo, n_users: 60, n_items: 50, reviews: true}}
split: {{name: random, test: 0.2}}
k: 5
metrics: [nDCG]
models:
  - name: LMRec
    encoder: {encoder}
    device: cpu
    devices: 2
    strategy: {strategy}
    epochs: 4
    patience: 0
    batch_size: 16
    max_length: 16
"""


def kill_second_rank(process: subprocess.Popen[str], store: Path) -> None:
    """Kill the younger of the training processes once there is a checkpoint."""
    deadline = time.monotonic() + 240
    while not [*store.glob("partial/*")]:
        assert process.poll() is None, "it ended without a checkpoint"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ranks = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "spawn_main" in " ".join(child.cmdline())
    ]
    assert len(ranks) == 2
    max(ranks, key=lambda rank: (rank.create_time(), rank.pid)).kill()


@pytest.mark.slow  # four trainings of ten seconds
@pytest.mark.skipif(count_cores() < 2, reason="one core trains in one process")
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_the_same_command_resumes_after_a_process_was_killed(
    tmp_path: Path, strategy: str
) -> None:
    encoder = write_small_encoder(tmp_path / "encoder")
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.format(encoder=encoder, strategy=strategy), encoding="utf-8")
    words = ("run", spec.name, "--quiet", "--out")
    with subprocess.Popen(
        [sys.executable, "-m", "recbias", *words, "killed"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        kill_second_rank(process, tmp_path / "killed/store")
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "process 2 of 2 of LMRec, on cpu, died (signal 9)" in errors
    assert "run the same command again" in errors
    resumed = run_recbias(*words, "killed", folder=tmp_path)
    assert resumed.code == 0, resumed.err
    alone = run_recbias(*words, "alone", folder=tmp_path)
    assert alone.code == 0, alone.err
    first, second = (tmp_path / out / "x/latest/metrics.csv" for out in ("killed", "alone"))
    assert first.read_bytes() == second.read_bytes()
    manifest = json.loads((first.parent / "manifest.json").read_text(encoding="utf-8"))
    (fit,) = [stage for stage in manifest["stages"] if stage["kind"] == "fit"]
    assert 1 <= fit["resumed_seconds"] < fit["seconds"]


LMREC_DEVICES_SPEC: dict[str, Any] = {
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
    (folder / "two.json").write_text(json.dumps(LMREC_DEVICES_SPEC))


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
