from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from recbias.reports.views.comparisons import Comparisons
from recbias.reports.views.grid import Table
from recbias.reports.views.run_tables import read_run
from recbias.reports.views.significance import tabulate_pairs
from recbias.reports.views.wide_tables import build_summary
from support.run_folders import NINETEEN_MODELS, RunSpec, make_run


def summarize_wins_of_z(folder: Path, world: RunSpec) -> Table:
    """Return the summary of a run in which z is better than all others, which do not differ."""
    make_run(folder, world)
    path = folder / "significance.csv"
    frame = pd.read_csv(path)
    significant = (frame["a"] == "z") | (frame["b"] == "z")
    frame["mean_a"] = (frame["a"] == "z").astype(float)
    frame["mean_b"] = (frame["b"] == "z").astype(float)
    frame["effect_size"] = frame["mean_a"] - frame["mean_b"]
    frame.assign(significant=significant).to_csv(path, index=False)
    return build_summary(read_run(folder))


def test_letters_name_the_models_that_are_worse(tmp_path: Path) -> None:
    table = summarize_wins_of_z(tmp_path, RunSpec(models=("x", "y", "z"), metrics=("HR",)))
    assert [row[0].mark for row in table.rows] == ["a", "b", "c"]
    assert [row[1].mark for row in table.rows] == ["", "", "ab"]
    assert table.notes[-1].startswith("Letters: significantly better than the model with that")


def test_many_models_get_a_star_for_the_best(tmp_path: Path) -> None:
    table = summarize_wins_of_z(tmp_path, RunSpec(models=(*NINETEEN_MODELS, "z"), metrics=("HR",)))
    assert [row[0].text for row in table.rows if row[1].mark] == ["z"]
    assert {row[1].mark for row in table.rows} == {"", "*"}
    assert table.notes[-1].startswith("Star: significantly better than every other model")


def test_a_metric_without_direction_has_no_marks(tmp_path: Path) -> None:
    table = build_summary(read_run(make_run(tmp_path, RunSpec(metrics=("Gini",)))))
    assert {row[1].mark for row in table.rows} == {""}


def test_means_over_folds_have_no_marks_and_a_note_explains_why(tmp_path: Path) -> None:
    table = build_summary(read_run(make_run(tmp_path, RunSpec(folds=2, users=20))))
    assert {cell.mark for row in table.rows for cell in row} == {""}
    assert "they were not compared" in table.notes[-1]


def test_each_dataset_has_its_own_marks(tmp_path: Path) -> None:
    world = RunSpec(models=("x", "y", "z"), metrics=("HR",), datasets=("d", "e"))
    table = summarize_wins_of_z(tmp_path, world)
    marks = {(row[0].text, row[1].text): row[2].mark for row in table.rows}
    assert marks["d", "z"] == marks["e", "z"] == "ab"
    assert not marks["all", "z"]


def test_a_comparison_is_a_row_with_its_numbers() -> None:
    row = {
        "model": "",
        "a": "<x>",
        "b": "y",
        "difference": -0.1,
        "ci_low": math.nan,
        "ci_high": math.nan,
        "statistic": -2.0,
        "p": 0.01,
        "p_adjusted": 0.21,
        "effect_size": math.nan,
        "significant": "False",
    }
    rows = (row, row | {"model": "m", "ci_low": -0.3, "ci_high": 0.1, "significant": "True"})
    table = tabulate_pairs(Comparisons("HR", "higher", ("d", "1", "1"), "t", "models", "", rows))
    assert table.title == "Comparisons on HR"
    assert [[cell.text for cell in cells] for cells in table.rows] == [
        ["<x>", "y", "-0.1000", "", "-2.00", "0.01", "0.21", "n/a", "no"],
        ["m: <x>", "y", "-0.1000", "-0.3000 to 0.1000", "-2.00", "0.01", "0.21", "n/a", "yes"],
    ]
    assert [cell.value for cell in table.rows[1]][2:7] == [-0.1, -0.3, -2.0, 0.01, 0.21]
