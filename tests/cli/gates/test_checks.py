from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from recbias.runs.tables import find_run
from support.commands import CommandResult, invoke_recbias

SPEC = """\
name: release
dataset: {name: demo, n_users: 80, n_items: 60}
split: {name: random, test: 0.2}
k: 5
models: [Random, MostPop, ItemKNN]
metrics: [nDCG, ItemCoverage, {name: nDCG, by: gender, gap: difference}]
tests: []
checks:
  - {metric: nDCG, at_least: AT_LEAST, models: [ItemKNN]}
  - {metric: nDCG, not_below: Random, margin: 0.01, strict: STRICT}
"""


def run_spec(folder: Path, at_least: float, *, strict: bool = False) -> CommandResult:
    text = SPEC.replace("AT_LEAST", str(at_least)).replace("STRICT", str(strict).lower())
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return invoke_recbias("run", "spec.yaml", "--verbose", folder=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checks")


def test_a_run_whose_checks_pass_exits_with_0(folder: Path) -> None:
    result = run_spec(folder, 0.01)
    assert result.code == 0, result.err
    head, *rows = result.out.partition("Checks (@5)\n")[2].splitlines()
    assert head.split() == ["model", "metric", "value", "95%", "interval", "limit", "verdict"]
    assert [line.split()[0] for line in rows[1:3]] == ["ItemKNN", "ItemKNN"]
    assert all(line.endswith("pass") for line in rows[1:3])


def test_a_failed_check_exits_with_3_and_computes_nothing_again(folder: Path) -> None:
    run_spec(folder, 0.01)
    result = run_spec(folder, 0.9)
    assert result.code == 3
    stages = [line for line in result.err.splitlines() if ":" in line and "warning" not in line]
    assert stages
    assert all(line.endswith(": cached") for line in stages)
    first = result.out.partition("Checks (@5)\n")[2].splitlines()[2]
    assert first.startswith("ItemKNN  nDCG ")
    assert first.endswith("fail")
    assert "1 of 2 failed, 0 undecided." in result.out


def test_verdicts_are_in_every_format(folder: Path) -> None:
    run_spec(folder, 0.9)
    run = find_run("release", folder / "results")
    root = ET.parse(run / "checks.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    rows = json.loads((run / "report.json").read_text(encoding="utf-8"))["checks"]
    assert [row["verdict"] for row in rows] == ["fail", "pass"]
    for name in ("report.md", "report.html", "tables/checks.tex"):
        text = (run / name).read_text(encoding="utf-8")
        assert "at least 0.9" in text, name
        assert "1 of 2 failed, 0 undecided." in text, name
