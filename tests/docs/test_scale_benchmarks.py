"""The benchmarks of large data run with tiny sizes: whoever has the time can run them whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run_benchmark(name: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return result.stdout + result.stderr


@pytest.mark.slow  # a process for each stage
def test_growth_has_a_row_for_each_stage_and_its_exponent(tmp_path: Path) -> None:
    sizes = ("--sizes", "50000,100000", "--models", "MostPop", "--folder", str(tmp_path))
    lines = run_benchmark("growth.py", *sizes).splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert rows[0] == ["stage", "50,000", "100,000", "exponent"]
    names = [row[0].rstrip(" |") for row in rows[1:]]
    assert names[:4] == ["load", "load and 10-core", "split", "queries"]
    assert names[4:] == ["fit MostPop", "lists MostPop", "measures MostPop", "tests and tables"]
    for row in rows[1:]:
        assert all(re.fullmatch(r"[\d,.]+ s, [\d,]+ MB", cell) for cell in row[1:3]), row


@pytest.mark.slow  # five models
def test_goodreads_is_computed_whole() -> None:
    text = run_benchmark("goodreads.py", "--share", "0.0005")
    for model in ("Random", "MostPop", "PureSVD", "implicit/ALS", "BPR-MF"):
        for metric in ("nDCG", "HR", "ItemCoverage", "log_popularity_difference"):
            (value,) = re.findall(rf"{model} +{metric} +(-?[\d.]+)", text)
            assert metric.startswith("log") or float(value) > 0


@pytest.mark.slow  # the models of implicit beside ours
def test_neighbours_are_compared_with_implicit() -> None:
    pytest.importorskip("implicit")
    text = run_benchmark("neighbours.py", "--size", "20000")
    for name in ("ItemKNN, fit", "implicit, fit", "ItemKNN, lists", "UserKNN, fit"):
        assert re.search(rf"^{name} +[\d.]+ +[\d.]+$", text, re.MULTILINE), text
    assert len(re.findall(r"^ratio +[\d.]+$", text, re.MULTILINE)) == 3


@pytest.mark.slow  # a process for each stage
def test_a_log_is_audited_in_blocks(tmp_path: Path) -> None:
    lines = run_benchmark("impression_log.py", str(tmp_path), "--rows", "1200000").splitlines()
    assert lines[0] == "stage,seconds,peak_memory_mb"
    assert {"load impressions", "measure policy_value of candidate", "all"} <= {
        line.partition(",")[0] for line in lines
    }
