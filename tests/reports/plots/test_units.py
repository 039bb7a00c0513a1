from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.plots_papers import (
    compute_exposure,
    count_recommendations,
    draw_hit_shares,
    draw_long_tail,
)
from recbias.reports.run import RunTables, read_run
from reports.plots.svg_reading import (
    find_elements,
    find_marks,
    read_points,
    read_texts,
    read_tooltips,
)
from support.plot_rows import MODELS, Measure, write_run
from support.run_folders import RunSpec, make_run

LISTS = [("A", "x"), ("A", "x"), ("A", "y"), ("A", "x"), ("B", "z"), ("B", "y")]


def make_lists(
    folder: Path, lists: list[tuple[str, str]], popularity: dict[str, int]
) -> RunTables:
    """Return a run with (model, item) recommendations and training interactions by item."""
    make_run(folder, RunSpec(models=("A", "B"), lists=False, popularity=False))
    frame = pd.DataFrame(lists, columns=["model", "item_id"]).assign(dataset="ml-1m", fold="1")
    frame.to_parquet(folder / "lists.parquet", row_group_size=2)
    if popularity:
        counts = pd.DataFrame(popularity.items(), columns=["item_id", "interactions"])
        counts.assign(dataset="ml-1m", seed="", fold="1").to_parquet(folder / "popularity.parquet")
    return read_run(folder)


def test_recommendations_are_counted_over_row_groups(tmp_path: Path) -> None:
    frame = count_recommendations(make_lists(tmp_path, LISTS, {}))
    counts = {(row.model, row.item_id): row.lists for row in frame.itertuples()}
    assert counts == {("A", "x"): 3, ("A", "y"): 1, ("B", "z"): 1, ("B", "y"): 1}


def test_shares_accumulate_over_items_by_training_interactions(tmp_path: Path) -> None:
    run = make_lists(tmp_path, LISTS, {"z": 6, "y": 3, "w": 1})
    shares = compute_exposure(run, "ml-1m")
    # In order of interactions: z 6, y 3, w 1, x 0 (recommended, and never in training).
    assert {name: column.tolist() for name, column in shares.items()} == {
        "training data": [0.6, 0.9, 1.0, 1.0],
        "A": [0.0, 0.25, 0.25, 1.0],
        "B": [0.5, 1.0, 1.0, 1.0],
    }
    (plot,) = draw_long_tail(run, "ml-1m", str)
    lines = find_elements(plot, "polyline")
    assert [line.get("class") for line in lines] == ["reference", "curve c0", "curve c1"]
    heads = [read_points(line)[0][1] for line in lines]
    assert heads[0] < heads[2] < heads[1]  # B recommends z less than its share, and more than A
    assert [read_points(line)[-1][1] for line in lines] == [34.0] * 3  # shares add up to 100%


def test_shares_of_lists_with_a_label_are_dots_the_best_first(tmp_path: Path) -> None:
    figures = {("", ""): (0.2, 0.1), ("gender=F", ""): (0.4, 0.0)}
    hits = Measure("HIT_BAD", figures, direction="lower", spread=0.25)
    everyone, women = draw_hit_shares(write_run(tmp_path, [hits]), "ml-1m", str)
    assert [text for text in read_texts(everyone) if text in MODELS] == list(MODELS)
    places = [x for x, _ in find_marks(everyone).values()]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert read_tooltips(everyone)[0].startswith("Random: 0.2000 (95% interval 0.1")
    assert women.title == "HIT_BAD of each model, gender=F"
