"""The numbers of ``--json`` are those of the run folder to the last digit."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import recbias
from support.commands import invoke_recbias
from support.specs import make_small_spec

PLACE = ("dataset", "model", "seed", "fold", "metric", "k", "group", "target")
METRICS = ["nDCG", "ItemCoverage", {"name": "nDCG", "by": "gender"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs ``old`` and ``new`` and the spec of ``new``."""
    folder = tmp_path_factory.mktemp("numbers")
    for name, neighbors in (("old", 20), ("new", 3)):
        models = ["MostPop", {"name": "ItemKNN", "neighbors": neighbors}]
        spec = make_small_spec(name=name, models=models, metrics=METRICS)
        recbias.run(spec, out=folder / "results")
    (folder / "new.yaml").write_text(json.dumps(spec), encoding="utf-8")
    return folder


def call(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Return the document of a command, which prints nothing else."""
    result = invoke_recbias(*words, "--json", folder=folder)
    assert result.code == code, result.err
    document: dict[str, Any] = json.loads(result.out)
    return document


def read_rows(folder: Path, run: str, file: str = "metrics.csv") -> list[dict[str, str]]:
    path = recbias.load(run, folder / "results").folder / file
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def assert_equal(value: object, text: str, name: str) -> None:
    """Compare a value of a document with a cell of CSV, digit by digit."""
    if isinstance(value, float):
        assert value.hex() == float(text).hex(), name
    else:
        assert ("" if value is None else str(value)) == text.removesuffix(".0"), name


def test_summary_of_a_run_is_metrics_csv(folder: Path) -> None:
    document = call(folder, "run", "new.yaml", "--quiet")
    rows = read_rows(folder, "new")
    assert len(document["summary"]) == len(rows)
    for row, cells in zip(document["summary"], rows, strict=True):
        assert [*row] == [*cells]
        for name, value in row.items():
            assert_equal(value, cells[name], name)
    report = json.loads((folder / document["folder"] / "manifest.json").read_text("utf-8"))
    assert all(document[name] == report[name] for name in ("seconds", "started", "warnings"))


def test_compared_values_are_those_of_both_files(folder: Path) -> None:
    document = call(folder, "compare", "old", "new", "--fail-over", "0", code=3)
    files = {
        side: {tuple(row[name] for name in PLACE): row["value"] for row in read_rows(folder, run)}
        for side, run in (("a", "old"), ("b", "new"))
    }
    assert document["values"]
    for row in document["values"]:
        key = tuple(str(row[name]) for name in PLACE)
        for side, values in files.items():
            assert_equal(float(row[f"value_{side}"]), values[key], str(key))
        assert row["difference"] == row["value_b"] - row["value_a"]
    frame = recbias.compare("old", "new", out=folder / "results")
    rows = [*document["values"], *document["gaps"]]
    for name in ("ci_low", "ci_high", "p", "p_adjusted"):
        column = pd.Series([row[name] for row in rows], dtype="float64", name=name)
        pd.testing.assert_series_equal(column, frame[name], check_exact=True)


def test_power_and_runs_are_those_of_python(folder: Path) -> None:
    document = call(folder, "power", "new", "--difference", "0.05")
    frame = recbias.power(recbias.load("new", folder / "results"), 0.05)
    for name in ("n", "difference", "alpha", "detectable", "needed", "needed_a", "needed_b"):
        column = pd.Series([row[name] for row in document["rows"]], dtype="float64", name=name)
        expected = frame[name].astype("float64")
        pd.testing.assert_series_equal(column, expected, check_exact=True)
    runs = recbias.list_runs(folder / "results")
    listed = call(folder, "runs")["runs"]
    assert [row["seconds"] for row in listed] == runs["seconds"].tolist()
    assert [row["failures"] for row in listed] == runs["failures"].tolist()


def test_planned_addresses_are_those_of_the_run(folder: Path) -> None:
    document = call(folder, "plan", "new.yaml")
    manifest = recbias.load("new", folder / "results").manifest
    planned = {stage["address"] for stage in document["stages"]}
    assert planned >= {stage["digest"] for stage in manifest["stages"]}
    assert (document["stages_stored"], document["stages_to_run"]) == (len(document["stages"]), 0)
