from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.plots.exposure import Exposure, compute_exposure, count_recommendations
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import RunSpec, make_run

LISTS = [("A", "x"), ("A", "x"), ("A", "y"), ("A", "x"), ("B", "z"), ("B", "y")]


def make_lists(
    folder: Path, lists: list[tuple[str, str]], popularity: dict[str, int]
) -> RunTables:
    """Return a run with (model, item) recommendations and training interactions by item."""
    make_run(folder, RunSpec(lists=False, popularity=False))
    frame = pd.DataFrame(lists, columns=["model", "item_id"]).assign(dataset="ml-1m", fold="1")
    frame.to_parquet(folder / "lists.parquet", row_group_size=2)
    if popularity:
        counts = pd.DataFrame(popularity.items(), columns=["item_id", "interactions"])
        counts.assign(dataset="ml-1m").to_parquet(folder / "popularity.parquet")
    return read_run(folder)


def expose(run: RunTables) -> Exposure:
    exposure = compute_exposure(run, count_recommendations(run), "ml-1m")
    assert exposure is not None
    return exposure


def test_recommendations_are_counted_over_row_groups(tmp_path: Path) -> None:
    frame = count_recommendations(make_lists(tmp_path, LISTS, {}))
    counts = {(row.model, row.item_id): row.lists for row in frame.itertuples()}
    assert counts == {("A", "x"): 3, ("A", "y"): 1, ("B", "z"): 1, ("B", "y"): 1}


def test_shares_accumulate_over_items_by_training_interactions(tmp_path: Path) -> None:
    exposure = expose(make_lists(tmp_path, LISTS, {"z": 6, "y": 3, "w": 1}))
    # In order of interactions: z 6, y 3, w 1, x 0 (recommended, and never in training).
    assert exposure.n_items == 4
    assert exposure.models["A"].tolist() == [0.0, 0.25, 0.25, 1.0]
    assert exposure.models["B"].tolist() == [0.5, 1.0, 1.0, 1.0]
    assert exposure.training is not None
    assert exposure.training.tolist() == [0.6, 0.9, 1.0, 1.0]


def test_items_are_sorted_by_recommendations_without_popularity(tmp_path: Path) -> None:
    exposure = expose(make_lists(tmp_path, LISTS, {}))
    assert exposure.training is None
    assert exposure.models["A"].tolist() == [0.75, 1.0, 1.0]  # x 3, y 2, z 1 over both models


def test_equally_popular_items_are_sorted_by_identifier(tmp_path: Path) -> None:
    exposure = expose(make_lists(tmp_path, [("A", "b")], {"c": 1, "b": 1, "a": 1}))
    assert exposure.models["A"].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dataset", ["another", "all"])
def test_dataset_without_lists_has_no_exposure(tmp_path: Path, dataset: str) -> None:
    run = make_lists(tmp_path, LISTS, {})
    assert compute_exposure(run, count_recommendations(run), dataset) is None


def test_run_without_lists_has_no_recommendations(tmp_path: Path) -> None:
    assert count_recommendations(read_run(make_run(tmp_path, RunSpec(lists=False)))).empty


def test_dictionary_columns_are_read(tmp_path: Path) -> None:
    make_lists(tmp_path, LISTS, {"x": 1})
    for name in ("lists", "popularity"):
        path = tmp_path / f"{name}.parquet"
        frame = pd.read_parquet(path)
        texts = {column: "category" for column in frame if frame[column].dtype == object}
        frame.astype(texts).to_parquet(path)
    assert expose(read_run(tmp_path)).models["A"].tolist() == [0.75, 1.0, 1.0]
