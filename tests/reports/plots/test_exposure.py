from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.plots.exposure import exposure, recommended
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import World, make_run


def run_of(folder: Path, lists: list[tuple[str, str]], popularity: dict[str, int]) -> RunTables:
    """Return a run with (model, item) recommendations and training interactions by item."""
    make_run(folder, World(lists=False, popularity=False))
    frame = pd.DataFrame(lists, columns=["model", "item_id"]).assign(dataset="ml-1m", fold="1")
    frame.to_parquet(folder / "lists.parquet", row_group_size=2)
    if popularity:
        counts = pd.DataFrame(popularity.items(), columns=["item_id", "interactions"])
        counts.assign(dataset="ml-1m").to_parquet(folder / "popularity.parquet")
    return read_run(folder)


LISTS = [("A", "x"), ("A", "x"), ("A", "y"), ("A", "x"), ("B", "z"), ("B", "y")]


def test_recommendations_are_counted_over_row_groups(tmp_path: Path) -> None:
    found = recommended(run_of(tmp_path, LISTS, {}))
    counts = {(row.model, row.item_id): row.lists for row in found.itertuples()}
    assert counts == {("A", "x"): 3, ("A", "y"): 1, ("B", "z"): 1, ("B", "y"): 1}


def test_shares_add_up_over_items_by_training_interactions(tmp_path: Path) -> None:
    run = run_of(tmp_path, LISTS, {"z": 6, "y": 3, "w": 1})
    found = exposure(run, recommended(run), "ml-1m")
    assert found is not None
    # In order of interactions: z 6, y 3, w 1, x 0 (recommended, and never in training).
    assert found.n_items == 4
    assert found.models["A"].tolist() == [0.0, 0.25, 0.25, 1.0]
    assert found.models["B"].tolist() == [0.5, 1.0, 1.0, 1.0]
    assert found.training is not None
    assert found.training.tolist() == [0.6, 0.9, 1.0, 1.0]


def test_without_popularity_items_stand_by_recommendations(tmp_path: Path) -> None:
    run = run_of(tmp_path, LISTS, {})
    found = exposure(run, recommended(run), "ml-1m")
    assert found is not None
    assert found.training is None
    assert found.models["A"].tolist() == [0.75, 1.0, 1.0]  # x 3, y 2, z 1 over both models


def test_equally_popular_items_stand_by_identifier(tmp_path: Path) -> None:
    run = run_of(tmp_path, [("A", "b")], {"c": 1, "b": 1, "a": 1})
    found = exposure(run, recommended(run), "ml-1m")
    assert found is not None
    assert found.models["A"].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dataset", ["another", "all"])
def test_a_dataset_without_lists_has_no_exposure(tmp_path: Path, dataset: str) -> None:
    run = run_of(tmp_path, LISTS, {})
    assert exposure(run, recommended(run), dataset) is None


def test_a_run_without_lists_has_no_recommendations(tmp_path: Path) -> None:
    assert recommended(read_run(make_run(tmp_path, World(lists=False)))).empty


def test_dictionary_columns_are_read_too(tmp_path: Path) -> None:
    run = run_of(tmp_path, LISTS, {"x": 1})
    for name in ("lists", "popularity"):
        path = tmp_path / f"{name}.parquet"
        frame = pd.read_parquet(path)
        texts = {each: "category" for each in frame if frame[each].dtype == object}
        frame.astype(texts).to_parquet(path)
    found = exposure(run, recommended(run), "ml-1m")
    assert found is not None
    assert found.models["A"].tolist() == [0.75, 1.0, 1.0]
