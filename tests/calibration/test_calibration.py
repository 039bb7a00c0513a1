"""A small part of the calibration study: intervals hold the truth, tests keep their level."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import ROOT

SCRIPT = ROOT / "studies" / "calibration" / "run.py"


@pytest.mark.slow
def test_intervals_cover_true_values_and_tests_keep_their_level() -> None:
    worlds = ["lists sampled from all", "several groups", "two raters", "as units"]
    command = [sys.executable, str(SCRIPT), "--seeds", "30", "--jobs", "1", "--only", *worlds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    intervals, tests = done.stdout.split("## Tests inside one model")
    assert intervals.count("%") > 20
    assert tests.count("%") > 3
    assert "▼" not in intervals.split("## Intervals")[1]
    assert "▲" not in tests


@pytest.mark.slow  # many samples
def test_planted_differences_are_found_as_often_as_the_power_says() -> None:
    command = [sys.executable, str(SCRIPT.with_name("power_studies.py")), "--worlds", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    units = ("| users", "| names", "| sentence")
    rows = [line for line in done.stdout.splitlines() if line.startswith(units)]
    rough = ("skewed", "hits", "debiasing", "pairs ignored", "| 20 |")
    exact = [row for row in rows if not any(part in row for part in rough)]
    assert len(rows) > 45
    assert not [row for row in rows if row.startswith("| sentence") and "▼" in row]
    assert not [row for row in exact if "▼" in row or "▲" in row]
    assert not [row for row in rows if "hits" in row and "▼" in row]
