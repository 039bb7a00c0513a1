from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.reports.plots_units import draw_popularity, draw_popularity_means, make_edges
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    read_points,
    read_texts,
    read_tooltips,
    require_plot,
)
from support.run_folders import RunSpec, make_run

SMALL = RunSpec(models=("one",), metrics=("nDCG",), users=5)


def write_counts(
    folder: Path, counts: list[int] | None = None, world: RunSpec = SMALL
) -> RunTables:
    make_run(folder, world)
    if counts is not None:
        items = [f"i{number}" for number in range(len(counts))]
        frame = pd.DataFrame({"item_id": items, "interactions": counts})
        frame = frame.assign(dataset="ml-1m", seed="42", fold="1")
        frame.to_parquet(folder / "popularity.parquet", index=False)
    return read_run(folder)


def draw(folder: Path, counts: list[int] | None = None, world: RunSpec = SMALL) -> Plot | None:
    return draw_popularity(write_counts(folder, counts, world), "ml-1m", name="p")


def test_every_item_is_in_a_bin(tmp_path: Path) -> None:
    plot = require_plot(draw(tmp_path))
    bars = [tooltip for tooltip in read_tooltips(plot, "rect") if " with " in tooltip]
    assert sum(int(tooltip.split(" ")[0]) for tooltip in bars) == 300
    assert "of 300 items" in plot.caption
    assert "the most popular 1,000" in plot.caption


def test_items_without_interactions_are_counted(tmp_path: Path) -> None:
    plot = require_plot(draw(tmp_path, [0, 0, 0, *range(1, 40)]))
    assert "3 items without interactions are not drawn." in plot.caption


def test_first_fold_is_drawn(tmp_path: Path) -> None:
    world = RunSpec(models=("one",), metrics=("nDCG",), users=5, folds=3)
    assert "of 300 items" in require_plot(draw(tmp_path, world=world)).caption


@pytest.mark.parametrize("counts", [[], [1, 2, 3], [7] * 50, [0] * 50])
def test_too_few_items_or_values_have_no_plot(tmp_path: Path, counts: list[int]) -> None:
    assert draw(tmp_path, counts) is None


def test_run_without_popularity_table_has_no_plot(tmp_path: Path) -> None:
    assert (
        draw(tmp_path, world=RunSpec(models=("a",), metrics=("nDCG",), popularity=False)) is None
    )


@pytest.mark.parametrize("counts", [[1, 2], [5, 5000], [3, 4, 100000]])
def test_bins_cover_every_count_once(counts: list[int]) -> None:
    edges = make_edges(np.array(counts, dtype=np.float64))
    assert edges[0] <= min(counts)
    assert edges[-1] > max(counts)
    assert (np.diff(edges) >= 1).all()


def test_power_law_is_drawn_and_in_the_caption(tmp_path: Path) -> None:
    # 1000 // rank: P(count >= x) = 1000 / x / 300, so the density falls as x^-2
    plot = require_plot(draw(tmp_path))
    assert "power law with exponent" in plot.caption
    (line,) = find_elements(plot, "polyline")
    start, end = read_points(line)
    assert start[0] < end[0]
    assert start[1] < end[1] <= 306


def test_exponent_of_a_power_law_is_recovered(tmp_path: Path) -> None:
    counts = np.random.default_rng(5).zipf(2.5, 4000)
    plot = require_plot(draw(tmp_path, counts[counts < 10**6].tolist()))
    exponent = re.search(r"exponent (\d\.\d\d),", plot.caption)
    assert exponent is not None
    assert 2.3 < float(exponent[1]) < 2.7


@pytest.mark.parametrize(("most", "tick"), [(90, "50"), (900, "200"), (90_000, "1000")])
def test_axis_has_enough_ticks(tmp_path: Path, most: int, tick: str) -> None:
    assert tick in read_texts(draw(tmp_path, [*range(10, 30), most]))


LOG_POPULARITY = replace(SMALL, metrics=("nDCG", "log_popularity_difference"))


def test_running_mean_of_popularity_jumps_at_one_item_and_that_of_its_logarithm_less(
    tmp_path: Path,
) -> None:
    run = write_counts(tmp_path, [0, *[1, 2] * 40, 10_000], LOG_POPULARITY)
    plot = require_plot(draw_popularity_means(run, "ml-1m", name="p"))
    assert "log popularity" in read_texts(plot)
    raw, log = (
        np.array([float(pair.split(",")[1]) for pair in line.get("points", "").split()])
        for line in find_elements(plot, "polyline")
    )
    # the means over 81 items are 124.9 and 0.46: without the popular item 1.5 and 0.35
    assert raw[-1] == pytest.approx(log[-1])  # each ends at its mean
    jumps = [np.abs(np.diff(heights)).max() for heights in (raw, log)]
    assert jumps[0] > 3 * jumps[1]


@pytest.mark.parametrize(
    ("counts", "world"),
    [([*range(1, 40)], SMALL), ([7] * 50, LOG_POPULARITY), ([1, 2, 3], LOG_POPULARITY)],
)
def test_running_mean_of_popularity_needs_its_metric_and_unequal_items(
    tmp_path: Path, counts: list[int], world: RunSpec
) -> None:
    run = write_counts(tmp_path, counts, world)
    assert draw_popularity_means(run, "ml-1m", name="p") is None
