from __future__ import annotations

import math
from pathlib import Path

import pytest

from recbias.core.errors import MissingRun
from recbias.reports.views.run_tables import read_run
from recbias.reports.views.trials import (
    brief,
    overview,
    said,
    searches,
    trial_rows,
    trials_table,
    untold,
)
from support.run_folders import HOSTILE, RunSpec, make_run
from support.search_rows import FIVE_TRIALS, add_search, write_search_run


def test_a_run_without_searches_has_none(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(users=20)))
    assert searches(run) == ()
    assert trial_rows(run) == []


def test_a_search_is_read_as_it_was_made(tmp_path: Path) -> None:
    (found,) = searches(write_search_run(tmp_path))
    assert (found.title, found.metric, found.direction) == ("SLIM", "nDCG@10", "higher")
    assert [each.number for each in found.trials] == [1, 2, 3, 4, 5]
    assert [each.epochs for each in found.trials] == [0, 10, 0, 0, 0]
    assert [each.settings for each in found.trials] == [settings for _, _, settings in FIVE_TRIALS]
    assert [each.number for each in found.done] == [1, 3, 5]
    assert found.chosen.value == 0.35
    assert found.importances == {"alpha": 0.75, "similarity": 0.25}


def test_searches_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for place in ({"fold": 1}, {"fold": 2}, {"model": "EASE"}):
        add_search(tmp_path, fit=place)
    titles = [each.title for each in searches(read_run(tmp_path))]
    assert titles == ["SLIM, fold 1", "SLIM, fold 2", "EASE, fold 1"]


def test_a_search_that_the_manifest_does_not_tell_of_is_left_out(tmp_path: Path) -> None:
    write_search_run(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"searches"', '"others"'))
    assert searches(read_run(tmp_path)) == ()


def test_the_overview_has_a_row_a_search(tmp_path: Path) -> None:
    table = overview(searches(write_search_run(tmp_path)))
    (row,) = table.rows
    # the seconds are 1.5 (1 + 2 + 3 + 4 + 5) = 22.5
    assert [cell.text for cell in row] == [
        *("SLIM", "nDCG@10", "0.3500", "5", "1", "1", "22 s", "alpha 1e-05"),
    ]
    assert row[6].value == 22.5


def test_the_table_of_trials_has_a_column_a_setting(tmp_path: Path) -> None:
    (found,) = searches(write_search_run(tmp_path))
    table = trials_table(found)
    titles = ["trial", "nDCG@10", "alpha", "similarity", "came to", "epochs", "time"]
    assert [column.title for column in table.columns] == titles
    numeric = [column.title for column in table.columns if column.numeric]
    assert numeric == ["nDCG@10", "alpha", "epochs", "time"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "0.2000", "0.5", "cosine", "done", "", "1.50 s"],
        ["2", "0.0500", "0.001", "dice", "pruned", "10", "3.00 s"],
        ["3", "0.3500", "1e-05", "none", "the best", "", "4.50 s"],
        ["4", "", "9", "dice", "failed", "", "6.00 s"],
        ["5", "0.3000", "0.25", "cosine", "done", "", "7.50 s"],
    ]
    assert [row[1].best for row in table.rows] == [False, False, True, False, False]
    # what a pruned trial was judged by is no figure of the metric: marked, and sorted last
    assert [row[1].mark for row in table.rows] == ["", "p", "", "", ""]
    assert [math.isnan(row[1].value) for row in table.rows] == [False, True, False, True, False]
    assert "p: ended before its time" in table.notes[0]


def test_a_search_of_a_model_without_epochs_has_no_column_for_them(tmp_path: Path) -> None:
    rows = [(0.1 * each, "done", {"a": each}) for each in range(3)]
    (found,) = searches(write_search_run(tmp_path, rows=rows))
    assert [column.title for column in trials_table(found).columns][-2:] == ["came to", "time"]


def test_settings_that_were_tried_before_took_no_time(tmp_path: Path) -> None:
    run = write_search_run(tmp_path)
    assert run.trials is not None
    run.trials["seconds"] = 0.0
    (found,) = searches(run)
    assert trials_table(found).rows[0][-1].text == "tried before"


def test_a_search_is_said_in_a_sentence(tmp_path: Path) -> None:
    (found,) = searches(write_search_run(tmp_path))
    assert brief(found) == "nDCG@10 0.3500 in trial 3 of 5"
    assert said(found) == (
        "nDCG@10 on the validation rows (higher is better): 0.3500 in trial 3 of 5 "
        "(3 done, 1 pruned, 1 failed), by alpha 1e-05."
    )
    assert untold(found) == ""


@pytest.mark.parametrize("importances", [{}, {"alpha": math.nan, "similarity": math.nan}])
def test_what_is_not_known_of_the_settings_is_said(
    tmp_path: Path, importances: dict[str, float]
) -> None:
    (found,) = searches(write_search_run(tmp_path, importances=importances))
    assert "too few trials have a figure (4)" in untold(found)


def test_an_unknown_direction_is_none(tmp_path: Path) -> None:
    (found,) = searches(write_search_run(tmp_path, entry={"direction": "up", "k": None}))
    assert (found.metric, found.direction) == ("nDCG", "none")


def test_labels_are_text(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for each in HOSTILE:
        add_search(tmp_path, fit={"model": each})
    assert [each.title for each in searches(read_run(tmp_path))] == [*HOSTILE]


@pytest.mark.parametrize("settings", ["{", "7", "[1]"])
def test_settings_that_cannot_be_read_are_an_error(tmp_path: Path, settings: str) -> None:
    run = write_search_run(tmp_path)
    assert run.trials is not None
    run.trials["settings"] = settings
    with pytest.raises(MissingRun, match="its settings cannot be read") as caught:
        searches(run)
    assert caught.value.where.endswith("trials.csv")
