"""The benchmark for GPUs runs on a CPU with tiny sizes: whoever has a card can run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.mark.slow  # a third of a minute of CPU
def test_the_rehearsal_writes_a_row_for_each_way() -> None:
    command = [sys.executable, str(BENCHMARK), "--rehearse"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows = [line.split(" | ") for line in result.stdout.splitlines() if line.startswith("| ")]
    ways: dict[str, list[str]] = {}
    for part, way, rate, ratio, _ in rows[1:]:
        ways.setdefault(part.removeprefix("| "), []).append(way)
        assert float(rate.replace(",", "")) > 0
        assert float(ratio) > 0
    assert ways == {
        "encoder, fine-tuning": ["ours", "plain loop", "Trainer"],
        "encoder, reading": ["ours", "plain loop", "Trainer"],
        "causal model, reading": ["ours", "plain loop"],
        "causal model, training": ["ours", "Trainer"],
        "lists, 300 users x 500 items (users a second)": ["ours", "torch.topk"],
        **{
            f"{part} (users a second)": ["ours", "ours, by arrays on the CPU"]
            for part in ("EASE", "lists of EASE", "PureSVD", "ItemKNN", "UserKNN")
        },
        "NeuMF, training (samples a second)": ["ours, a CUDA graph", "ours, kernel by kernel"],
    }
