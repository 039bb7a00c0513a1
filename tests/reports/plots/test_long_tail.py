from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from recbias.reports.plots.exposure import Exposure
from recbias.reports.plots.long_tail import tail
from recbias.reports.views.run_tables import RunTables, read_run
from support.run_folders import HOSTILE, NINETEEN, World, make_run


@pytest.fixture
def run(tmp_path: Path) -> RunTables:
    return read_run(make_run(tmp_path, World(models=("x", "y"))))


def curves(run: RunTables, found: Exposure) -> list[ET.Element]:
    root = ET.fromstring(tail(run, found, name="t").document())
    return root.findall("{*}polyline")


def test_each_model_has_a_curve_and_training_is_the_reference(run: RunTables) -> None:
    found = Exposure({"y": np.array([0.5, 1.0]), "x": np.array([0.1, 1.0])}, np.array([0.3, 1.0]))
    drawn = curves(run, found)
    assert [each.get("class") for each in drawn] == ["reference", "curve c0", "curve c1"]
    heads = [float(each.get("points", "").split()[0].split(",")[1]) for each in drawn]
    assert heads[2] < heads[0] < heads[1]  # y recommends the first item most: it starts highest
    ends = [float(each.get("points", "").split()[-1].split(",")[1]) for each in drawn]
    assert ends == [34.0] * 3  # everything adds up to 100%


def test_the_tooltip_says_what_the_head_gets(run: RunTables) -> None:
    shares = np.linspace(0.1, 1, 10)
    said = curves(run, Exposure({"x": shares}, None))[0].findtext("{*}title")
    assert said == "x: 20.0% go to the 2 most popular items (20% of all)"


def test_without_training_the_caption_says_how_items_are_ordered(run: RunTables) -> None:
    figure = tail(run, Exposure({"x": np.array([1.0])}, None), name="t")
    assert "by how often all models recommend them" in figure.caption


def test_labels_are_few_and_points_do_not_grow_with_the_items(run: RunTables) -> None:
    shares = np.arange(1, 100_001) / 100_000
    found = Exposure(dict.fromkeys((*HOSTILE, *NINETEEN), shares), shares)
    drawn = curves(run, found)
    assert max(len(each.get("points", "").split()) for each in drawn) <= 60
    assert len(drawn) == 25
