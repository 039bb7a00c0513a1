from __future__ import annotations

from pathlib import Path

import pytest

from recbias.reports.run import read_run
from recbias.reports.views import (
    build_models_table,
    build_stages_table,
    describe_data,
    format_setting,
)
from support.run_folders import RunSpec, make_run


def test_data_and_settings_are_described(tmp_path: Path) -> None:
    assert dict(describe_data(read_run(make_run(tmp_path)))) == {
        "Dataset": "ml-1m: 5,949 users, 2,810 items, 571,531 interactions",
        "Filters": "threshold (at least 4), k_core (k 10)",
        "Queries": "5,949 users where age < 18",
        "Split": "random (test 0.2, validation 0, folds 1)",
        "List length k": "10",
        "Seed": "42",
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("random", "random"),
        ({"name": "k_core", "k": 10}, "k_core (k 10)"),
        ({"name": "users", "sample": None}, "users"),
        ({"alpha": 0.5, "items": ["a", "b"]}, "alpha 0.5, items a, b"),
        ([], ""),
        (1e-05, "1e-05"),
    ],
)
def test_settings_are_formatted_with_plug_ins_before_their_settings(
    value: object, text: str
) -> None:
    assert format_setting(value) == text


def test_tuned_parameters_are_named(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("SLIM",), users=20)))
    run.manifest["models"][0]["searched"] = ["l1_ratio", "alpha"]
    text = build_models_table(run).rows[0][-1].text
    assert text == "neighbors 100; tuned: l1 ratio, alpha"


def test_the_cost_of_stages_is_shown_where_a_stage_has_it(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("EASE", "SLIM"))))
    first, second = run.manifest["stages"]
    first["cost"] = {"cpu_seconds": 0.7, "gpu_seconds": 0.0, "cpu_energy_joules": 12.4}
    second |= {"reused": True, "seconds": 0.0, "peak_memory_mb": None, "cost": None}
    table = build_stages_table(run)
    assert [column.title for column in table.columns] == [
        *("stage", "kind", "duration", "CPU time", "peak memory", "CPU energy", "from cache")
    ]
    assert [cell.text for cell in table.rows[0][2:]] == [
        "0.40 s",
        "0.70 s",
        "300 MB",
        "12 J",
        "no",
    ]
    assert [cell.text for cell in table.rows[1][2:]] == ["", "", "", "", "yes"]
