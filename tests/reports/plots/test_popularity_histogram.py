from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.reports.plots_units import draw_popularity, make_edges
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    read_points,
    read_tooltips,
    require_plot,
)
from support.run_folders import RunSpec, make_run

SMALL = RunSpec(models=("one",), metrics=("nDCG",), users=5)


def draw(folder: Path, counts: list[int] | None = None, world: RunSpec = SMALL) -> Plot | None:
    make_run(folder, world)
    if counts is not None:
        items = [f"i{number}" for number in range(len(counts))]
        frame = pd.DataFrame({"item_id": items, "interactions": counts})
        frame = frame.assign(dataset="ml-1m", seed="42", fold="1")
        frame.to_parquet(folder / "popularity.parquet", index=False)
    return draw_popularity(read_run(folder), "ml-1m", name="p")


def test_every_item_is_in_a_bin(tmp_path: Path) -> None:
    plot = require_plot(draw(tmp_path))
    bars = [tooltip for tooltip in read_tooltips(plot, "rect") if " with " in tooltip]
    assert sum(int(tooltip.split(" ")[0]) for tooltip in bars) == 300
    assert "of 300 items" in plot.caption
    assert "the most popular 1,000" in plot.caption


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
