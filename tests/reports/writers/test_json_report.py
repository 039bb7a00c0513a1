from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recbias.reports.render import render_json
from recbias.reports.run import read_run
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
