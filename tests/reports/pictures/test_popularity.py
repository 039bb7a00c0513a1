from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from picture_rows import words
from recbias.reports.frame import read_run
from recbias.reports.pictures.picture import Picture
from recbias.reports.pictures.popularity import edges_of, popularity
from run_folders import World, make_run

SMALL = World(models=("one",), metrics=("nDCG",), users=5)


def drawn(folder: Path, counts: list[int] | None = None, world: World = SMALL) -> list[Picture]:
    make_run(folder, world)
    if counts is not None:
        ids = [f"i{at}" for at in range(len(counts))]
        place = {"dataset": "ml-1m", "seed": "42", "fold": "1"}
        frame = pd.DataFrame({"item_id": ids, "interactions": counts}).assign(**place)
        frame.to_parquet(folder / "popularity.parquet", index=False)
    return list(popularity(read_run(folder), "ml-1m", str))


def test_every_item_is_in_a_bin(tmp_path: Path) -> None:
    (picture,) = drawn(tmp_path)
    counted = [each for each in words(picture) if " with " in each]
    assert sum(int(each.split(" ")[0]) for each in counted) == 300
    assert "the 300 items" in picture.caption
    assert "the most popular 1,000" in picture.caption


def test_items_without_interactions_are_counted(tmp_path: Path) -> None:
    (picture,) = drawn(tmp_path, [0, 0, 0, *range(1, 40)])
    assert "3 items without any are not drawn." in picture.caption


def test_the_first_fold_is_drawn(tmp_path: Path) -> None:
    (picture,) = drawn(tmp_path, world=World(models=("one",), metrics=("nDCG",), users=5, folds=3))
    assert "the 300 items" in picture.caption


@pytest.mark.parametrize("counts", [[], [1, 2, 3], [7] * 50, [0] * 50])
def test_what_is_no_distribution_is_not_drawn(tmp_path: Path, counts: list[int]) -> None:
    assert drawn(tmp_path, counts) == []


def test_a_run_without_popularity_says_nothing(tmp_path: Path) -> None:
    assert drawn(tmp_path, world=World(models=("a",), metrics=("nDCG",), popularity=False)) == []


@pytest.mark.parametrize("counts", [[1, 2], [5, 5000], [3, 4, 100000]])
def test_edges_hold_every_count_once(counts: list[int]) -> None:
    edges = edges_of(np.array(counts, dtype=np.float64))
    assert edges[0] <= min(counts)
    assert edges[-1] > max(counts)
    assert (np.diff(edges) >= 1).all()
