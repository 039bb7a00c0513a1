from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import MissingRun
from recbias.reports.llm import (
    Search,
    collect_searches,
    describe_search,
    explain_missing_importances,
    read_trials,
    summarize_search,
    tabulate_searches,
    tabulate_trials,
)
from recbias.reports.run import read_run
from support.models.search_rows import FIVE_TRIALS, add_search, write_search_run
from support.run_folders import HOSTILE, RunSpec, make_run


def test_a_run_without_searches_has_none(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(users=20)))
    assert collect_searches(run) == ()
    assert read_trials(run) == []


def test_a_search_has_its_trials_and_importances(tmp_path: Path) -> None:
    (search,) = collect_searches(write_search_run(tmp_path))
    assert (search.title, search.metric, search.direction) == ("SLIM", "nDCG@10", "higher")
    assert [trial.number for trial in search.trials] == [1, 2, 3, 4, 5]
    assert [trial.epochs for trial in search.trials] == [0, 10, 0, 0, 0]
    assert [trial.settings for trial in search.trials] == [
        settings for _, _, settings in FIVE_TRIALS
    ]
    assert [trial.number for trial in search.done] == [1, 3, 5]
    assert search.chosen.value == 0.35
    assert search.importances == {"alpha": 0.75, "similarity": 0.25}


def test_titles_name_what_distinguishes_the_searches(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for fit in ({"fold": 1}, {"fold": 2}, {"model": "EASE"}):
        add_search(tmp_path, fit=fit)
    titles = [search.title for search in collect_searches(read_run(tmp_path))]
    assert titles == ["SLIM, fold 1", "SLIM, fold 2", "EASE, fold 1"]


def test_a_search_that_is_not_in_the_manifest_is_excluded(tmp_path: Path) -> None:
    write_search_run(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(text.replace('"searches"', '"others"'))
    assert collect_searches(read_run(tmp_path)) == ()


def test_an_unknown_direction_is_none(tmp_path: Path) -> None:
    (search,) = collect_searches(write_search_run(tmp_path, entry={"direction": "up", "k": None}))
    assert (search.metric, search.direction) == ("nDCG", "none")


def test_hostile_labels_are_unchanged(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for label in HOSTILE:
        add_search(tmp_path, fit={"model": label})
    assert [search.title for search in collect_searches(read_run(tmp_path))] == [*HOSTILE]


@pytest.mark.parametrize("settings", ["{", "7", "[1]"])
def test_unreadable_settings_are_an_error(tmp_path: Path, settings: str) -> None:
    run = write_search_run(tmp_path)
    assert run.trials is not None
    run.trials["settings"] = settings
    with pytest.raises(MissingRun, match="its settings cannot be read") as caught:
        collect_searches(run)
    assert caught.value.where.endswith("trials.csv")


def load_search(folder: Path, **options: Any) -> Search:
    (search,) = collect_searches(write_search_run(folder, **options))
    return search


def test_the_table_of_searches_has_one_row_per_search(tmp_path: Path) -> None:
    (row,) = tabulate_searches([load_search(tmp_path)]).rows
    # the seconds are 1.5 (1 + 2 + 3 + 4 + 5) = 22.5
    assert [cell.text for cell in row] == [
        *("SLIM", "nDCG@10", "0.3500", "5", "1", "1", "22 s", "alpha 1e-05")
    ]
    assert row[6].value == 22.5


def test_the_table_of_trials_has_one_column_per_setting(tmp_path: Path) -> None:
    table = tabulate_trials(load_search(tmp_path))
    titles = ["trial", "nDCG@10", "alpha", "similarity", "outcome", "epochs", "time"]
    assert [column.title for column in table.columns] == titles
    numeric = [column.title for column in table.columns if column.numeric]
    assert numeric == ["nDCG@10", "alpha", "epochs", "time"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["1", "0.2000", "0.5", "cosine", "done", "", "1.50 s"],
        ["2", "0.0500", "0.001", "dice", "pruned", "10", "3.00 s"],
        ["3", "0.3500", "1e-05", "none", "best", "", "4.50 s"],
        ["4", "", "9", "dice", "failed", "", "6.00 s"],
        ["5", "0.3000", "0.25", "cosine", "done", "", "7.50 s"],
    ]
    assert [row[1].best for row in table.rows] == [False, False, True, False, False]
    # the score of a pruned trial is not comparable: it is marked and sorted last
    assert [row[1].mark for row in table.rows] == ["", "p", "", "", ""]
    assert [math.isnan(row[1].value) for row in table.rows] == [False, True, False, True, False]
    assert table.notes[0].startswith("p: pruned")


def test_a_search_without_epochs_has_no_column_for_them(tmp_path: Path) -> None:
    rows = [(0.1 * number, "done", {"a": number}) for number in range(3)]
    table = tabulate_trials(load_search(tmp_path, rows=rows))
    assert [column.title for column in table.columns][-2:] == ["outcome", "time"]


def test_repeated_settings_take_no_time(tmp_path: Path) -> None:
    run = write_search_run(tmp_path)
    assert run.trials is not None
    run.trials["seconds"] = 0.0
    (search,) = collect_searches(run)
    assert tabulate_trials(search).rows[0][-1].text == "repeated"


def test_a_search_is_described_in_a_sentence(tmp_path: Path) -> None:
    search = load_search(tmp_path)
    assert summarize_search(search) == "nDCG@10 0.3500 in trial 3 of 5"
    assert describe_search(search) == (
        "Validation nDCG@10 (higher is better): 0.3500 in trial 3 of 5 "
        "(3 done, 1 pruned, 1 failed), with alpha 1e-05."
    )
    assert not explain_missing_importances(search)


@pytest.mark.parametrize("importances", [{}, {"alpha": math.nan, "similarity": math.nan}])
def test_missing_importances_are_explained(tmp_path: Path, importances: dict[str, float]) -> None:
    search = load_search(tmp_path, importances=importances)
    assert "too few trials have a score (4)" in explain_missing_importances(search)
