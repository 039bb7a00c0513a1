from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import FloatArray
from recbias.reports.plots_prompts import draw_hit_shares
from recbias.reports.plots_units import (
    Exposure,
    compute_exposure,
    count_recommendations,
    draw_long_tail,
)
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    find_marks,
    read_points,
    read_texts,
    read_tooltips,
)
from support.plot_rows import MODELS, Measure, write_run
from support.run_folders import RunSpec, make_run


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


def test_shares_of_lists_with_a_label_are_dots_the_best_first(tmp_path: Path) -> None:
    figures = {("", ""): (0.2, 0.1), ("gender=F", ""): (0.4, 0.0)}
    hits = Measure("HIT_BAD", figures, direction="lower", spread=0.25)
    everyone, women = draw_hit_shares(write_run(tmp_path, [hits]), "ml-1m", str)
    assert [text for text in read_texts(everyone) if text in MODELS] == list(MODELS)
    places = [x for x, _ in find_marks(everyone).values()]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert read_tooltips(everyone)[0].startswith("Random: 0.2000 (95% interval 0.1")
    assert women.title == "HIT_BAD of each model, gender=F"
