from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import MissingRun
from recbias.reports.llm import (
    Search,
    collect_searches,
    tabulate_trials,
)
from recbias.reports.run import read_run
from support.models.search_rows import FIVE_TRIALS, add_search, write_search_run
from support.run_folders import HOSTILE, RunSpec, make_run


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
