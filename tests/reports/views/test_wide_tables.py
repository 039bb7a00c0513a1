from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.reports.run import RunTables, read_run
from recbias.reports.tables import build_fold_table, build_group_tables, build_summary
from support.run_folders import RunSpec, make_run


def rewrite_metrics(folder: Path, **columns: Any) -> RunTables:
    path = folder / "metrics.csv"
    pd.read_csv(path, keep_default_na=False).assign(**columns).to_csv(path, index=False)
    return read_run(folder)


def test_the_summary_has_one_row_per_model_and_one_column_per_metric(tmp_path: Path) -> None:
    table = build_summary(read_run(make_run(tmp_path)))
    assert [column.title for column in table.columns] == [
        "model",
        *("nDCG@10", "HR@10", "MRR@10", "log_popularity_difference@10"),
    ]
    assert [column.numeric for column in table.columns] == [False, True, True, True, True]
    assert [row[0].text for row in table.rows][:2] == ["Random", "MostPop"]
    assert len(table.rows) == 7


@pytest.mark.parametrize(
    ("metric", "values", "wins"),
    [
        ("nDCG", [0.1, 0.3, 0.3, ""], ["b", "c"]),
        ("ARP", [0.1, 0.3, 0.3, ""], ["a"]),
        ("log_popularity_difference", [-0.1, 0.3, 0.05, ""], ["c"]),
        ("Gini", [0.1, 0.3, 0.3, ""], []),
    ],
)
def test_the_best_value_depends_on_the_direction(
    tmp_path: Path, metric: str, values: list[object], wins: list[str]
) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b", "c", "d"), metrics=(metric,), significance=False))
    table = build_summary(rewrite_metrics(tmp_path, value=values))
    assert [row[0].text for row in table.rows if row[1].best] == wins


def test_undefined_values_are_marked_and_counted(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("HR",), significance=False))
    table = build_summary(rewrite_metrics(tmp_path, value=["", 0.25], undefined=[200, 3]))
    cells = [row[1] for row in table.rows]
    assert [cell.text for cell in cells] == ["n/a", "0.2500"]
    assert math.isnan(cells[0].value)
    assert "undefined 3" in cells[1].note
    assert "HR@10" in table.notes[-1]
    assert "200 for a, 3 for b" in table.notes[-1]


def test_several_datasets_are_blocks_of_rows_with_the_mean_first(tmp_path: Path) -> None:
    world = RunSpec(models=("a", "b"), metrics=("HR",), datasets=("y", "x"), users=20)
    table = build_summary(read_run(make_run(tmp_path, world)))
    assert [column.title for column in table.columns] == ["dataset", "model", "HR@10"]
    heads = [(row[0].text, row[1].text) for row in table.rows]
    assert heads[:3] == [("all", "a"), ("all", "b"), ("y", "a")]
    assert sum(row[2].best for row in table.rows) == 3  # one in each block


def test_the_fold_table_has_every_seed_and_fold_with_the_mean_first(tmp_path: Path) -> None:
    world = RunSpec(models=("a",), metrics=("HR",), seeds=(10, 9), folds=2, users=20)
    table = build_fold_table(read_run(make_run(tmp_path, world)))
    assert table is not None
    assert [column.title for column in table.columns] == ["seed", "fold", "model", "HR@10"]
    places = [(row[0].text, row[1].text) for row in table.rows]
    assert places[0] == ("all", "all")
    assert places.index(("9", "1")) < places.index(("10", "1"))


def test_groups_and_targets_have_one_table_per_metric(tmp_path: Path) -> None:
    shares = (("race=black", "price=$"), ("race=white", "price=$"))
    run = read_run(make_run(tmp_path, RunSpec(models=("a", "b"), metrics=("HR",), parts=shares)))
    (table,) = build_group_tables(run)
    assert table.title == "HR@10 by group and target"
    assert [column.title for column in table.columns] == ["group", "target", "n", "a", "b"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["race=black", "price=$", "200", "0.1000", "0.1000"],
        ["race=white", "price=$", "200", "0.2000", "0.2000"],
    ]
    assert [row[0].text for row in build_summary(run).rows] == ["a", "b"]


def test_counts_and_shares_of_a_dataset_have_decimals_of_their_own(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("a",), metrics=("HR", "MRR"), significance=False))
    run = rewrite_metrics(tmp_path, model="(dataset)", value=[2373, 0.5032])
    (table,) = build_group_tables(run)
    assert table.title == "Properties of the dataset"
    assert [row[-1].text for row in table.rows] == ["2373", "0.5032"]


def test_a_run_in_which_every_stage_failed_has_an_empty_table(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(significance=False)))
    run.metrics.iloc[:0].to_csv(tmp_path / "metrics.csv", index=False)
    run = read_run(tmp_path)
    assert build_summary(run).rows == ()
    assert build_fold_table(run) is None
    assert build_group_tables(run) == []
