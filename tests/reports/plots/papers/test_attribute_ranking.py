from __future__ import annotations

from pathlib import Path

from recbias.reports.plots_prompts import MOST_LABELS, draw_attribute_ranking
from recbias.reports.svg import Plot
from reports.plots.svg_reading import read_marks, read_texts
from support.plot_rows import LOCATIONS, MODELS, Measure, make_averages, write_run
from support.run_folders import RunSpec


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


def test_of_many_labels_the_highest_and_the_lowest_are_drawn(tmp_path: Path) -> None:
    names = [f"place {number:03d}" for number in range(150)]
    texts = read_texts(draw(tmp_path, make_averages(names))[0])
    labels = [text for text in texts if text in names]
    assert len(labels) == MOST_LABELS
    assert labels[0] == "place 149"
    assert labels[-1] == "place 000"
    assert "The 30 highest" in texts


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
