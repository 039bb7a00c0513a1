from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import FloatArray
from recbias.reports.plots_units import (
    Exposure,
    compute_exposure,
    count_recommendations,
    draw_long_tail,
)
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_elements, read_points, read_texts, read_tooltips
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunTables:
    return read_run(make_run(tmp_path, RunSpec(models=("x", "y"))))


def draw(run: RunTables, models: dict[str, FloatArray], training: FloatArray | None) -> Plot:
    return draw_long_tail(run, Exposure(models, training), name="t")


def test_each_model_has_a_curve_beside_the_training_data(run: RunTables) -> None:
    models = {"y": np.array([0.5, 1.0]), "x": np.array([0.1, 1.0])}
    lines = find_elements(draw(run, models, np.array([0.3, 1.0])), "polyline")
    assert [line.get("class") for line in lines] == ["reference", "curve c0", "curve c1"]
    heads = [read_points(line)[0][1] for line in lines]
    assert heads[2] < heads[0] < heads[1]  # y recommends the first item most: it starts highest
    assert [read_points(line)[-1][1] for line in lines] == [34.0] * 3  # shares add up to 100%


def test_tooltip_has_the_share_of_the_head(run: RunTables) -> None:
    plot = draw(run, {"x": np.linspace(0.1, 1, 10)}, None)
    assert read_tooltips(plot) == ["x: 20.0% go to the 2 most popular items (20% of all)"]


def test_caption_without_training_data_names_the_order(run: RunTables) -> None:
    assert (
        "by the recommendations of all models" in draw(run, {"x": np.array([1.0])}, None).caption
    )


def test_points_and_labels_do_not_grow_with_the_items(run: RunTables) -> None:
    shares = np.arange(1, 100_001) / 100_000
    plot = draw(run, dict.fromkeys((*HOSTILE, *NINETEEN_MODELS), shares), shares)
    lines = find_elements(plot, "polyline")
    assert max(len(read_points(line)) for line in lines) <= 60
    assert len(lines) == 25
    assert set(NINETEEN_MODELS) <= set(read_texts(plot))


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
        counts.assign(dataset="ml-1m", seed="", fold="1").to_parquet(folder / "popularity.parquet")
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
