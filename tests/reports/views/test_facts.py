from __future__ import annotations

import json
from pathlib import Path

import pytest

from recbias.reports.run import RunTables, read_run
from recbias.reports.views import (
    Fact,
    build_files_table,
    build_models_table,
    build_stages_table,
    describe_data,
    describe_execution,
    format_setting,
    list_libraries,
)
from support.run_folders import RunSpec, make_run


def change_manifest(folder: Path, **fields: object) -> RunTables:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}), encoding="utf-8")
    return read_run(folder)


def test_data_and_settings_are_described(tmp_path: Path) -> None:
    assert dict(describe_data(read_run(make_run(tmp_path)))) == {
        "Dataset": "ml-1m: 5,949 users, 2,810 items, 571,531 interactions",
        "Filters": "threshold (at least 4), k_core (k 10)",
        "Queries": "5,949 users where age < 18",
        "Split": "random (test 0.2, validation 0, folds 1)",
        "List length k": "10",
        "Seed": "42",
    }


def test_the_size_before_filtering_is_described(tmp_path: Path) -> None:
    make_run(tmp_path)
    counts = {"users": 3, "bad_lines": 2, "interactions_before_threshold": 1000209}
    run = change_manifest(tmp_path, datasets=[{"label": "x", "counts": counts}])
    facts = dict(describe_data(run))
    assert facts["Dataset"] == "x: 3 users, 2 bad lines"
    assert facts["Before filtering"] == "1,000,209 interactions"


def test_fewer_queries_than_users_are_described_with_the_total(tmp_path: Path) -> None:
    make_run(tmp_path)
    queries = {"dataset": "ml-1m", "asked": 218, "unit": "user"}
    facts = dict(describe_data(change_manifest(tmp_path, queries=[queries], limit=300)))
    assert facts["Queries"] == "218 users (of 5,949) where age < 18"
    assert facts["Smoke test"] == "the first 300 queries only (--limit)"


def test_samples_of_queries_are_described_with_their_number(tmp_path: Path) -> None:
    make_run(tmp_path)
    queries = "name: users, sample: 1000, folds: 5"
    (tmp_path / "spec.yaml").write_text(f"queries: {{{queries}}}\n", encoding="utf-8")
    counts = {"dataset": "ml-1m", "asked": 1000, "unit": "user"}
    facts = dict(describe_data(change_manifest(tmp_path, queries=[counts])))
    assert facts["Queries"] == "5 disjoint samples of 1,000 users (of 5,949) sample 1000"


def test_queries_of_several_datasets_name_theirs(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(datasets=("x", "y"), users=20)))
    texts = [text for name, text in describe_data(run) if name == "Queries"]
    assert texts == ["5,949 users of x where age < 18", "5,949 users of y where age < 18"]


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


def test_the_execution_has_duration_and_memory(tmp_path: Path) -> None:
    facts = dict(describe_execution(read_run(make_run(tmp_path))))
    assert facts["Duration"] == "12 s"
    assert facts["Peak memory"] == "512 MB"
    assert "Commit" not in facts


def test_models_have_their_plug_in_and_parameters(tmp_path: Path) -> None:
    world = RunSpec(models=("mine",), names={"mine": "ItemKNN"})
    table = build_models_table(read_run(make_run(tmp_path, world)))
    assert [cell.text for cell in table.rows[0]] == ["mine", "ItemKNN", "neighbors 100"]


def test_tuned_parameters_are_named(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=("SLIM",), users=20)))
    run.manifest["models"][0]["searched"] = ["l1_ratio", "alpha"]
    text = build_models_table(run).rows[0][-1].text
    assert text == "neighbors 100; tuned: l1 ratio, alpha"


def test_stages_have_duration_memory_and_cache(tmp_path: Path) -> None:
    table = build_stages_table(read_run(make_run(tmp_path, RunSpec(models=("EASE",)))))
    assert [cell.text for cell in table.rows[0]] == ["fit EASE", "fit", "0.40 s", "300 MB", "no"]
    assert [cell.value for cell in table.rows[0]][2:4] == [0.4, 300.0]


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


def test_files_have_their_digest(tmp_path: Path) -> None:
    table = build_files_table(read_run(make_run(tmp_path)))
    assert [cell.text for cell in table.rows[0]] == ["ml-1m", "ratings.dat", "f" * 64]


def test_libraries_have_their_version(tmp_path: Path) -> None:
    assert Fact("numpy", "2.4") in list_libraries(read_run(make_run(tmp_path)))
