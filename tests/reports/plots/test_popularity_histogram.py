from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from recbias.reports.plots.drawing.svg import Figure
from recbias.reports.plots.popularity_histogram import edges_of, popularity
from recbias.reports.views.run_tables import read_run
from support.run_folders import World, make_run

SMALL = World(models=("one",), metrics=("nDCG",), users=5)


def drawn(folder: Path, counts: list[int] | None = None, world: World = SMALL) -> Figure | None:
    make_run(folder, world)
    if counts is not None:
        ids = [f"i{at}" for at in range(len(counts))]
        place = {"dataset": "ml-1m", "seed": "42", "fold": "1"}
        frame = pd.DataFrame({"item_id": ids, "interactions": counts}).assign(**place)
        frame.to_parquet(folder / "popularity.parquet", index=False)
    return popularity(read_run(folder), "ml-1m", name="p")


def some(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


def words(figure: Figure) -> list[str]:
    root = ET.fromstring(figure.document())
    return [
        each.findtext("{*}title") or "" for each in root.iter("{http://www.w3.org/2000/svg}rect")
    ]


def test_every_item_is_in_a_bin(tmp_path: Path) -> None:
    picture = some(drawn(tmp_path))
    counted = [each for each in words(picture) if " with " in each]
    assert sum(int(each.split(" ")[0]) for each in counted) == 300
    assert "the 300 items" in picture.caption
    assert "the most popular 1,000" in picture.caption


def test_items_without_interactions_are_counted(tmp_path: Path) -> None:
    picture = some(drawn(tmp_path, [0, 0, 0, *range(1, 40)]))
    assert "3 items without any are not drawn." in picture.caption


def test_the_first_fold_is_drawn(tmp_path: Path) -> None:
    world = World(models=("one",), metrics=("nDCG",), users=5, folds=3)
    picture = some(drawn(tmp_path, world=world))
    assert "the 300 items" in picture.caption


@pytest.mark.parametrize("counts", [[], [1, 2, 3], [7] * 50, [0] * 50])
def test_what_is_no_distribution_is_not_drawn(tmp_path: Path, counts: list[int]) -> None:
    assert drawn(tmp_path, counts) is None


def test_a_run_without_popularity_says_nothing(tmp_path: Path) -> None:
    assert drawn(tmp_path, world=World(models=("a",), metrics=("nDCG",), popularity=False)) is None


@pytest.mark.parametrize("counts", [[1, 2], [5, 5000], [3, 4, 100000]])
def test_edges_hold_every_count_once(counts: list[int]) -> None:
    edges = edges_of(np.array(counts, dtype=np.float64))
    assert edges[0] <= min(counts)
    assert edges[-1] > max(counts)
    assert (np.diff(edges) >= 1).all()


def test_the_law_is_said_and_drawn(tmp_path: Path) -> None:
    # 1000 // rank: P(count >= x) = 1000 / x / 300, so the density falls as x^-2
    figure = some(drawn(tmp_path))
    assert "power law with exponent" in figure.caption
    root = ET.fromstring(figure.document())
    (line,) = (each for each in root.iter("{http://www.w3.org/2000/svg}polyline"))
    ends = [tuple(map(float, each.split(","))) for each in (line.get("points") or "").split()]
    assert ends[0][0] < ends[1][0]
    assert ends[0][1] < ends[1][1] <= 306


def test_the_bars_of_a_power_law_fall_along_its_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    drawn_counts = rng.zipf(2.5, 4000)
    figure = some(drawn(tmp_path, drawn_counts[drawn_counts < 10**6].tolist()))
    found = re.search(r"exponent (\d\.\d\d),", figure.caption)
    assert found is not None
    assert 2.3 < float(found[1]) < 2.7


@pytest.mark.parametrize(("top", "some"), [(90, "50"), (900, "200"), (90_000, "1,000")])
def test_the_axis_has_figures_enough(tmp_path: Path, top: int, some: str) -> None:
    figure = drawn(tmp_path, [*range(10, 30), top])
    assert figure is not None
    assert f">{some}</text>" in figure.body
