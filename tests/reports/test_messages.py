from __future__ import annotations

from pathlib import Path

import pytest

from recbias.reports.run import read_run
from recbias.reports.wording import list_failures, list_warnings
from support.run_folders import RunSpec, make_run


def test_failures_name_stage_error_and_remedy(tmp_path: Path) -> None:
    failure = {"stage": "fit X", "model": "X", "message": "out of\nmemory", "help": "use less"}
    run = read_run(make_run(tmp_path, RunSpec(failures=[failure])))
    assert list_failures(run) == ["fit X failed: out of memory. Help: use less"]


@pytest.mark.parametrize(
    ("warnings", "lines"),
    [
        (["w", "v", "w"], ["w", "v"]),
        (
            ["measure a of X: 3 lost", "measure a of Y: 3 lost", "measure a of Y: 2 lost"],
            ["3 lost (2 stages)", "measure a of Y: 2 lost"],
        ),
    ],
)
def test_a_warning_of_several_stages_is_listed_once(
    tmp_path: Path, warnings: list[str], lines: list[str]
) -> None:
    assert list_warnings(read_run(make_run(tmp_path, RunSpec(warnings=warnings)))) == lines


def test_a_cause_is_one_line_with_the_metrics_that_it_concerns(tmp_path: Path) -> None:
    cause = "3 queries have no label 'gender'"
    warnings = [
        f"measure {metric} of {model}: {metric.partition('(')[0]}: {cause}"
        for metric in ("nDCG(by=age)", "HR")
        for model in "ab"
    ]
    warnings += ["measure HR of a: HR: 2 are lost", "fit a: slow", "chi_squared: no p-value"]
    run = read_run(make_run(tmp_path, RunSpec(metrics=("nDCG(by=age)", "HR"), warnings=warnings)))
    assert list_warnings(run) == [
        f"{cause} (nDCG by age; HR; 4 stages)",
        "measure HR of a: 2 are lost",
        "fit a: slow",
        "chi_squared: no p-value",
    ]
