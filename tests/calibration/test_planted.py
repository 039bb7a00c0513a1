"""Every metric of the catalogue has a world with a planted value and one without an effect."""

from __future__ import annotations

import subprocess
import sys

from conftest import ROOT
from recbias.registry import METRICS

FOLDER = ROOT / "studies" / "calibration"
DESCRIPTIVE = {"top_words", "attribute_share", "catalogue_counts", "direction_similarity"}
DESCRIPTIVE |= {"effective_sample_size"}


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER)


def test_every_metric_is_planted_and_measured_without_an_effect() -> None:
    done = run_python("run.py", "--catalogue")
    assert done.returncode == 0, done.stderr
    rows = [
        line.strip("| ").split(" | ") for line in done.stdout.split("By metric")[1].split("\n")
    ]
    worlds = {row[0]: row[1:] for row in rows if row[0] in METRICS}
    assert set(worlds) == set(METRICS)
    complete = {name for name, cells in worlds.items() if len(cells) == 2 and all(cells)}
    assert set(METRICS) - complete == DESCRIPTIVE


def test_a_metric_without_a_world_is_reported() -> None:
    code = (
        "import sys; sys.path[:0] = ['../../tests', '.']; "
        "from catalogue import find_gaps; from worlds_of_all import WORLDS; "
        "print(find_gaps([w for w in WORLDS if 'review' not in w.name and 'nothing' != w.plants]))"
    )
    done = run_python("-c", code)
    assert "class_MRR: no world plants a value" in done.stdout, done.stderr
    assert "class_MRR: no world is without an effect" in done.stdout
    assert "unmatched" not in done.stdout
