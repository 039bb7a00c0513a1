from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.arrays import FloatArray
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.exposure import Exposure
from recbias.reports.plots.long_tail import draw_long_tail
from recbias.reports.views.run_tables import RunTables, read_run
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
