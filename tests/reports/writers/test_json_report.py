from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.json_report import SCHEMA_VERSION, json_report
from support.run_folders import HOSTILE, RunSpec, make_run
from support.search_rows import FIVE_TRIALS, write_search_run


def strict(text: str) -> dict[str, object]:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found: dict[str, object] = json.loads(text, parse_constant=refuse)
    return found


def test_it_holds_everything_and_no_nan(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=HOSTILE, folds=2, users=20))
    run = read_run(tmp_path)
    report = strict(json_report(run))
    assert report["schema_version"] == SCHEMA_VERSION
    assert list(report) == [
        *("schema_version", "metrics", "significance", "trials", "importances", "reference"),
        *("definitions", "manifest"),
    ]
    metrics, significance = report["metrics"], report["significance"]
    assert isinstance(metrics, list)
    assert isinstance(significance, list)
    assert [row["model"] for row in metrics] == run.metrics["model"].tolist()
    assert metrics[-1]["ci_low"] is None  # a mean over folds has no interval here
    assert {row["significant"] for row in significance} <= {True, False}
    assert report["reference"] is None
    assert report["manifest"] == run.manifest


def test_definitions_say_formula_direction_range_and_source(tmp_path: Path) -> None:
    report = strict(json_report(read_run(make_run(tmp_path))))
    definitions = report["definitions"]
    assert isinstance(definitions, list)
    assert definitions[0]["title"] == "nDCG@10"
    assert definitions[0]["direction"] == "higher"
    assert {"formula", "values", "source", "unit", "parameters"} <= set(definitions[0])


def test_the_comparison_with_published_figures_is_in_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"table": ["children/a3"], "relative": [float("inf")], "within": [True]})
    report = strict(json_report(read_run(make_run(tmp_path)), frame))
    assert report["reference"] == [{"table": "children/a3", "relative": None, "within": True}]


def test_a_run_without_comparisons_has_an_empty_list(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(significance=False)))
    assert strict(json_report(run))["significance"] == []


def test_trials_stand_in_it_with_their_settings(tmp_path: Path) -> None:
    found = json.loads(json_report(write_search_run(tmp_path)))
    assert [each["state"] for each in found["trials"]] == [each[1] for each in FIVE_TRIALS]
    assert found["trials"][2]["settings"] == {"alpha": 1e-5, "similarity": None}
    assert found["trials"][3]["value"] is None
    assert [each["importance"] for each in found["importances"]] == [0.75, 0.25]
    without = json.loads(json_report(read_run(make_run(tmp_path / "without"))))
    assert (without["trials"], without["importances"]) == ([], [])
