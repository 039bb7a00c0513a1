from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.reports.render import render_json
from recbias.reports.run import read_run
from support.models.search_rows import FIVE_TRIALS, write_search_run
from support.run_folders import HOSTILE, RunSpec, make_run


def parse_strictly(text: str) -> dict[str, Any]:
    """Parse JSON that must not hold NaN or infinity."""

    def refuse_constant(constant: str) -> None:
        raise AssertionError(constant)

    report: dict[str, Any] = json.loads(text, parse_constant=refuse_constant)
    return report


def test_the_report_holds_all_tables_and_no_nan(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=HOSTILE, folds=2, users=20)))
    report = parse_strictly(render_json(run))
    assert report["schema_version"] == 1
    assert list(report) == [
        *("schema_version", "conclusions", "metrics", "significance", "trials", "importances"),
        *("reference", "checks", "definitions", "manifest"),
    ]
    assert [row["model"] for row in report["metrics"]] == run.metrics["model"].tolist()
    assert report["metrics"][-1]["ci_low"] is None  # a mean over folds has no interval here
    assert {row["significant"] for row in report["significance"]} <= {True, False}
    assert report["reference"] is None
    assert report["manifest"] == run.manifest


def test_definitions_hold_formula_direction_range_and_source(tmp_path: Path) -> None:
    definition = parse_strictly(render_json(read_run(make_run(tmp_path))))["definitions"][0]
    assert (definition["title"], definition["direction"]) == ("nDCG@10", "higher")
    assert {"formula", "values", "source", "unit", "parameters"} <= set(definition)


def test_the_comparison_with_a_published_table_is_included(tmp_path: Path) -> None:
    frame = pd.DataFrame({"table": ["children/a3"], "relative": [float("inf")], "within": [True]})
    report = parse_strictly(render_json(read_run(make_run(tmp_path)), frame))
    assert report["reference"] == [{"table": "children/a3", "relative": None, "within": True}]


def test_a_run_without_comparisons_has_an_empty_list(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(significance=False)))
    assert parse_strictly(render_json(run))["significance"] == []


def test_trials_are_included_with_their_settings(tmp_path: Path) -> None:
    report = parse_strictly(render_json(write_search_run(tmp_path)))
    assert [trial["state"] for trial in report["trials"]] == [state for _, state, _ in FIVE_TRIALS]
    assert report["trials"][2]["settings"] == {"alpha": 1e-5, "similarity": None}
    assert report["trials"][3]["value"] is None
    assert [row["importance"] for row in report["importances"]] == [0.75, 0.25]
    without = parse_strictly(render_json(read_run(make_run(tmp_path / "without"))))
    assert (without["trials"], without["importances"]) == ([], [])
