from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from recbias.core.machine import count_cores
from support.commands import run_recbias
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
