from __future__ import annotations

import math
from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import MOST_MODELS
from recbias.reports.plots_prompts import MOST_LABELS, draw_attribute_ranking
from recbias.reports.svg import Plot
from reports.plots.svg_reading import read_marks, read_texts
from support.plot_rows import LOCATIONS, MODELS, Measure, make_averages, write_run
from support.run_folders import NINETEEN_MODELS, RunSpec


def draw(folder: Path, measure: Measure, world: RunSpec | None = None) -> list[Plot]:
    return list(draw_attribute_ranking(write_run(folder, [measure], world), "ml-1m", str))


def test_labels_are_ranked_by_their_mean(tmp_path: Path) -> None:
    plots = draw(tmp_path, make_averages())
    assert [plot.title for plot in plots] == [
        f"Average price by location: {model}" for model in MODELS
    ]
    assert [text for text in read_texts(plots[0]) if text in LOCATIONS] == list(
        reversed(LOCATIONS)
    )
    points = read_marks(plots[0])
    assert len(points) == len(LOCATIONS)
    assert points == sorted(points, key=lambda point: (-point[0], point[1]))


def test_caption_names_the_highest_and_the_lowest(tmp_path: Path) -> None:
    caption = draw(tmp_path, make_averages())[0].caption
    assert "Highest: courthouse, 2.200 (95% interval 2.140 to 2.260)" in caption
    assert "lowest: office, 1.500 (95% interval 1.440 to 1.560)." in caption


def test_of_many_labels_the_highest_and_the_lowest_are_drawn(tmp_path: Path) -> None:
    names = [f"place {number:03d}" for number in range(150)]
    texts = read_texts(draw(tmp_path, make_averages(names))[0])
    labels = [text for text in texts if text in names]
    assert len(labels) == MOST_LABELS
    assert labels[0] == "place 149"
    assert labels[-1] == "place 000"
    assert "The 30 highest" in texts


def test_of_many_models_some_are_drawn_and_the_others_named(tmp_path: Path) -> None:
    world = RunSpec(
        models=(*NINETEEN_MODELS, "LMRec", "WOK"), metrics=("nDCG",), users=5, items=20
    )
    plots = draw(tmp_path, make_averages(), world)
    assert len(plots) == MOST_MODELS
    assert "The table also has" in plots[0].caption
    assert "11 more." in plots[0].caption  # 21 models, 6 drawn, 4 named


def test_single_label_has_no_extremes(tmp_path: Path) -> None:
    assert "Highest" not in draw(tmp_path, make_averages(["office"]))[0].caption


def test_reference_line_is_the_mean_without_a_label_word(tmp_path: Path) -> None:
    figures = {("location=bank", ""): (2.0, 0.1), ("location=farm", ""): (1.5, 0.1)}
    settings = {"attribute": "price"}
    neutral = Measure("mean_attribute", {**figures, ("neutral", ""): (1.9, 0.1)}, settings)
    (plot, *_) = draw(tmp_path / "a", neutral)
    assert plot.title.startswith("Average price by location: ")
    texts = read_texts(plot)
    assert "without any word" in texts
    assert "mean over the labels" not in texts
    assert [text for text in texts if text in {"bank", "farm", "neutral"}] == ["bank", "farm"]
    (plot, *_) = draw(tmp_path / "b", Measure("mean_attribute", figures, settings))
    assert "mean over the labels" in read_texts(plot)


def test_metric_without_a_defined_value_is_a_reason(tmp_path: Path) -> None:
    undefined = Measure("mean_attribute", {("location=a", ""): (math.nan, 0.0)})
    with pytest.raises(MissingEvidence, match="no defined mean"):
        draw(tmp_path, undefined)
