from __future__ import annotations

from pathlib import Path

from recbias.reports.views.facts import Fact
from recbias.reports.views.provenance import (
    build_files_table,
    build_models_table,
    build_stages_table,
    list_libraries,
)
from recbias.reports.views.run_tables import read_run
from support.run_folders import RunSpec, make_run


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


def test_files_have_their_digest(tmp_path: Path) -> None:
    table = build_files_table(read_run(make_run(tmp_path)))
    assert [cell.text for cell in table.rows[0]] == ["ml-1m", "ratings.dat", "f" * 64]


def test_libraries_have_their_version(tmp_path: Path) -> None:
    assert Fact("numpy", "2.4") in list_libraries(read_run(make_run(tmp_path)))
