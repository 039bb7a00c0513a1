from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MissingRun
from recbias.reports.views.run_tables import read_run
from recbias.reports.views.trials import collect_searches, read_trials
from support.run_folders import HOSTILE, RunSpec, make_run
from support.search_rows import FIVE_TRIALS, add_search, write_search_run


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
