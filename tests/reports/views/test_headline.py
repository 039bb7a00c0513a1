from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.views.headline import all_first, datasets, headline, models, place_of, varying
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import RunSpec, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunTables:
    world = RunSpec(models=("b", "a"), datasets=("y", "x"), seeds=(2, 1), folds=2, users=20)
    return read_run(make_run(tmp_path, world))


def test_datasets_and_models_stand_as_the_manifest_has_them(run: RunTables) -> None:
    assert datasets(run) == ["all", "y", "x"]
    assert models(run) == ["b", "a"]


def test_the_headline_is_the_mean_over_seeds_and_folds(run: RunTables) -> None:
    found = headline(run, run.metrics)
    assert set(found["seed"]) == set(found["fold"]) == {"all"}
    assert list(dict.fromkeys(found["dataset"])) == ["all", "y", "x"]


def test_without_a_mean_the_first_seed_and_fold_are_the_headline(run: RunTables) -> None:
    found = headline(run, run.significance)
    assert set(found["seed"]) == {"2"}
    assert set(found["fold"]) == {"1"}
    assert list(dict.fromkeys(found["dataset"])) == ["y", "x"]


def test_a_single_fold_is_its_own_headline(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    assert len(headline(run, run.metrics)) == len(run.metrics)


def test_an_empty_frame_stays_empty(run: RunTables) -> None:
    assert headline(run, run.metrics.iloc[:0]).empty


def test_varying_columns_hold_more_than_one_value() -> None:
    frame = pd.DataFrame({"a": [1, 1], "b": [1, 2]})
    assert varying(frame, ["a", "b"]) == ["b"]


def test_all_sorts_in_front_of_numbers_and_numbers_by_size() -> None:
    assert sorted(["10", "b", "9", "all"], key=all_first) == ["all", "b", "9", "10"]


def test_a_place_is_dataset_seed_and_fold() -> None:
    assert place_of({"dataset": "x", "seed": 1, "fold": "all"}) == ("x", "1", "all")
