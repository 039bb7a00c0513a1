from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.run import read_run
from recbias.reports.tables import build_summary, tabulate_comparisons
from recbias.reports.wording import Table
from support.hand_worked_runs import compare, state, write_run
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
    assert table.notes[-1].startswith("Star: significantly better than every other compared")


def test_a_star_of_two_models_does_not_speak_of_every_other(tmp_path: Path) -> None:
    folder = make_run(tmp_path, RunSpec(models=(*NINETEEN_MODELS, "z"), metrics=("HR",)))
    pairs = pd.read_csv(folder / "significance.csv")
    pairs = pairs[(pairs["a"] == "MostPop") & (pairs["b"] == "z")].assign(
        mean_a=0.0, mean_b=1.0, effect_size=-1.0, significant=True
    )
    pairs.to_csv(folder / "significance.csv", index=False)
    table = build_summary(read_run(folder))
    assert [row[0].text for row in table.rows if row[1].mark] == ["z"]
    assert table.notes[-1].startswith("Star: significantly better than the other compared model")


def test_means_over_folds_have_no_marks_and_a_note_explains_why(tmp_path: Path) -> None:
    table = build_summary(read_run(make_run(tmp_path, RunSpec(folds=2, users=20))))
    assert {cell.mark for row in table.rows for cell in row} == {""}
    assert "they were not compared" in table.notes[-1]


def test_comparisons_of_all_metrics_are_rows_by_their_effect(tmp_path: Path) -> None:
    small = compare("x", "<y>", (0.2, 0.3), 0.2, effect_size=-0.1, p_adjusted=0.21)
    # No effect size: se = 0.1 / t(0.975; 99) = 0.0504, and 0.3 / se / sqrt(100) = 0.595.
    large = compare("x", "<y>", (0.2, 0.5), 0.1, metric="HR", significant=True)
    undefined = {**small, "metric": "MRR", "ci_low": math.nan, "ci_high": math.nan}
    undefined |= {"model": "m", "between": "groups", "effect_size": math.nan}
    run = write_run(tmp_path, [state("x", 0.2)], [small, large, undefined])
    table = tabulate_comparisons(run)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["HR@10", "x", "<y>", "-0.3000", "-0.4000 to -0.2000", "0.5", "0.60", "yes", PAIRED],
        ["nDCG@10", "x", "<y>", "-0.1000", "-0.3000 to 0.1000", "0.21", "0.10", "no", PAIRED],
        ["MRR@10", "m: x", "<y>", "-0.1000", "", "0.21", "n/a", "no", PAIRED],
    ]
    assert [cell.value for cell in table.rows[1]][3:6] == pytest.approx([-0.1, -0.3, 0.21])


PAIRED = "paired t-test"
