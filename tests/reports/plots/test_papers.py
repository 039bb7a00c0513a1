from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.reports.plots_prompts import (
    MOST_LABELS,
    Forest,
    Mark,
    Panel,
    Row,
    compute_neutral,
    draw_associations,
    draw_attribute_ranking,
    draw_forest,
    draw_group_means,
    draw_prices,
    draw_word_counts,
)
from recbias.reports.plots_units import compute_box, draw_projections
from recbias.reports.svg import Interval, Plot
from reports.plots.svg_reading import find_marks, read_marks, read_texts
from support.plot_rows import (
    FOODS,
    LEVELS,
    MODELS,
    PROJECTION,
    SETS,
    Measure,
    make_association,
    make_averages,
    make_group_measure,
    make_projection_units,
    make_shares,
    write_run,
)
from support.run_folders import RunSpec

RACE, GENDER = (
    make_association("race", ("white", "black"), 1),
    make_association("gender", ("F", "M"), 2),
)


def draw(folder: Path, *measures: Measure) -> list[Plot]:
    return list(draw_associations(write_run(folder, measures), "ml-1m", str))


def make_constant(measure: Measure, value: float) -> Measure:
    return replace(measure, figures=dict.fromkeys(measure.figures, (value, 0.08)))


def test_each_attribute_value_is_placed_by_both_labels(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RACE, GENDER)[0])
    race = [RACE.figures["race=white", f"categories={food}"][0] for food in FOODS]
    gender = [GENDER.figures["gender=F", f"categories={food}"][0] for food in FOODS]
    assert len(points) == len(FOODS)
    xs = [points[n][0] for n in np.argsort(race)]
    ys = [points[n][1] for n in np.argsort(gender)]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)


def test_open_points_have_intervals_that_include_zero(tmp_path: Path) -> None:
    zero = make_constant(GENDER, 0.0)
    near = draw(tmp_path / "near", make_constant(RACE, 0.01), zero)[0]
    far = draw(tmp_path / "far", make_constant(RACE, 0.5), zero)[0]
    assert "Open points" in near.caption
    assert len(read_marks(near, "open")) == len(FOODS)
    assert "Open points" not in far.caption
    assert read_marks(far, "open") == []


def draw_of_attribute_ranking(
    folder: Path, measure: Measure, world: RunSpec | None = None
) -> list[Plot]:
    return list(draw_attribute_ranking(write_run(folder, [measure], world), "ml-1m", str))


def test_of_many_labels_the_highest_and_the_lowest_are_drawn(tmp_path: Path) -> None:
    names = [f"place {number:03d}" for number in range(150)]
    texts = read_texts(draw_of_attribute_ranking(tmp_path, make_averages(names))[0])
    labels = [text for text in texts if text in names]
    assert len(labels) == MOST_LABELS
    assert labels[0] == "place 149"
    assert labels[-1] == "place 000"
    assert "The 30 highest" in texts


def test_reference_line_is_the_mean_without_a_label_word(tmp_path: Path) -> None:
    figures = {("location=bank", ""): (2.0, 0.1), ("location=farm", ""): (1.5, 0.1)}
    settings = {"attribute": "price"}
    neutral = Measure("mean_attribute", {**figures, ("neutral", ""): (1.9, 0.1)}, settings)
    (plot, *_) = draw_of_attribute_ranking(tmp_path / "a", neutral)
    assert plot.title.startswith("Average price by location: ")
    texts = read_texts(plot)
    assert "without any word" in texts
    assert "mean over the labels" not in texts
    assert [text for text in texts if text in {"bank", "farm", "neutral"}] == ["bank", "farm"]
    (plot, *_) = draw_of_attribute_ranking(
        tmp_path / "b", Measure("mean_attribute", figures, settings)
    )
    assert "mean over the labels" in read_texts(plot)


def draw_of_forest(
    *panels: Panel, series: tuple[str, ...] = ("",), axis: str = "x", note: str = ""
) -> Plot:
    return draw_plot(Forest(panels, series, axis, note))


def draw_plot(forest: Forest) -> Plot:
    return draw_forest(forest, name="f", title="t", caption="c")


def make_panel(*values: float, series: int = 1, title: str = "") -> Panel:
    rows = []
    for number, value in enumerate(values):
        interval = Interval(value, value - 0.1, value + 0.1)
        marks = [Mark(interval, index, f"{number}/{index}") for index in range(series)]
        rows.append(Row(f"row {number}", tuple(marks)))
    return Panel(title, tuple(rows))


def test_larger_values_stand_further_right_and_later_rows_lower() -> None:
    points = list(find_marks(draw_of_forest(make_panel(0.1, 0.5, 0.9))).values())
    assert points == sorted(points)
    assert points == sorted(points, key=lambda point: point[1])
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)


PAIR = ("gender=F", "gender=M")


def draw_of_group_means(folder: Path, measure: Measure) -> list[Plot]:
    return list(draw_group_means(write_run(folder, [measure]), "ml-1m", str))


def test_each_model_has_a_mark_for_each_group(tmp_path: Path) -> None:
    (plot,) = draw_of_group_means(tmp_path, make_group_measure(PAIR))
    # 0.20 and 0.23 for the first model, 0.02 more for each other
    female, male = ([x for x, _ in find_marks(plot, group).values()] for group in PAIR)
    assert len(female) == len(male) == len(MODELS)
    assert female == sorted(female)
    assert all(a < b for a, b in zip(sorted(female), sorted(male), strict=True))
    assert find_marks(plot, "MostPop, gender=M: 0.2500 (95% interval 0.2300 to 0.2700), n 40")


@pytest.mark.parametrize(("n", "rows"), [(8, MODELS), (12, None), (40, MODELS)])
def test_many_groups_are_rows_and_of_more_the_ends_are_drawn(
    tmp_path: Path, n: int, rows: tuple[str, ...] | None
) -> None:
    groups = tuple(f"age={age}&gender=F" for age in range(n))
    (plot,) = draw_of_group_means(tmp_path, make_group_measure(groups))
    texts = read_texts(plot)
    assert len(find_marks(plot)) == len(MODELS) * (2 if n == 40 else n)
    labels = rows or groups
    assert [text for text in texts if text in labels][-len(labels) :] == list(labels)


def draw_of_prices(folder: Path, measure: Measure, world: RunSpec | None = None) -> Plot:
    (plot,) = draw_prices(write_run(folder, [measure], world), "ml-1m", str)
    return plot


def test_each_level_of_each_model_has_a_mark_for_each_label(tmp_path: Path) -> None:
    plot = draw_of_prices(tmp_path, make_shares())
    assert len(find_marks(plot)) == len(MODELS) * len(LEVELS) * 2
    # black is 0.7, 0.6, 0.5, 0.4 from $ to $$$$: further and further left, white the other way
    black, white = (
        [
            x
            for title, (x, _) in find_marks(plot, f"race={race}").items()
            if title.startswith(MODELS[0])
        ]
        for race in ("black", "white")
    )
    assert len(black) == len(LEVELS)
    assert black == sorted(black, reverse=True)
    assert white == sorted(white)
    assert black[2] == pytest.approx(white[2], abs=0.1)  # both 0.5


@pytest.mark.parametrize(
    ("labels", "within", "neutral"),
    [
        (["race=a", "race=b", "race=c"], "", 1 / 3),
        (["race=a&sex=F", "race=b&sex=F", "race=a&sex=M", "race=b&sex=M"], "", 0.25),
        (["race=a&sex=F", "race=b&sex=F", "race=a&sex=M", "race=b&sex=M"], "sex", 0.5),
        (["race=a&sex=F", "race=b&sex=F", "race=a&sex=M"], "sex", math.nan),  # 2 F and 1 M
        (["race=a"], "", math.nan),
    ],
)
def test_neutral_share_of_classes(labels: list[str], within: str, neutral: float) -> None:
    assert compute_neutral(labels, within) == pytest.approx(neutral, nan_ok=True)


def draw_of_projection(folder: Path, units: dict[str, list[Any]]) -> list[Plot]:
    return list(draw_projections(write_run(folder, [PROJECTION], units=units), "ml-1m", str))


def find_means(plot: Plot) -> list[tuple[float, float]]:
    return [read_marks(plot, f"centre c{series}")[0] for series in range(3)]


def test_each_set_has_its_points_and_its_mean(tmp_path: Path) -> None:
    plots = draw_of_projection(tmp_path, make_projection_units(MODELS))
    assert [plot.title for plot in plots] == [f"Latent space of {model}" for model in MODELS]
    counts = [len(read_marks(plots[0], f"cloud c{series}")) for series in range(len(SETS))]
    assert counts == [80, 80, 80]
    # means at (1, 0), (-1, 0) and (2, 1): a unit is as long across as upwards
    female, male, romance = find_means(plots[0])
    unit = (female[0] - male[0]) / 2
    assert unit > 20
    assert female[1] == pytest.approx(male[1], abs=0.2)
    assert romance[0] - female[0] == pytest.approx(unit, abs=0.2)
    assert female[1] - romance[1] == pytest.approx(unit, abs=0.2)
    assert "gender=F (80)" in read_texts(plots[0])


def test_box_equals_the_hand_calculation() -> None:
    # 1 to 9 and 30: quartiles at 3.25, 5.5 and 7.75 (linear), the box is 4.5 long, whiskers reach
    # from 3.25 - 6.75 to 7.75 + 6.75 = 14.5, that is 1 to 9; the mean is 75 / 10
    box = compute_box(np.array([*range(1, 10), 30.0]))
    assert (box.low, box.q1, box.median, box.q3, box.high) == (1, 3.25, 5.5, 7.75, 9)
    assert (box.mean, box.n) == (7.5, 10)


COUNTS = {
    ("race=black", "word=grill"): (40.0, 0.0),
    ("race=black", "word=soul"): (25.0, 0.0),
    ("race=white", "word=grill"): (30.0, 0.0),
    ("race=white", "word=café"): (35.0, 0.0),
}
WORDS = Measure("top_words", COUNTS, {"label": "race", "attribute": "name"})


def draw_of_word_counts(folder: Path, measure: Measure) -> list[Plot]:
    return list(draw_word_counts(write_run(folder, [measure]), "ml-1m", str))


def test_every_word_has_a_mark_for_each_label_that_has_it(tmp_path: Path) -> None:
    plots = draw_of_word_counts(tmp_path, WORDS)
    assert [plot.title for plot in plots] == [
        f"Words in recommended names by race: {model}" for model in MODELS
    ]
    marks = find_marks(plots[0])
    assert set(marks) == {
        f"{MODELS[0]}, {mark}"
        for mark in (
            *("race=black, word=grill: 40", "race=white, word=grill: 30"),
            *("race=black, word=soul: 25", "race=white, word=café: 35"),
        )
    }
    by_count = sorted(marks, key=lambda title: marks[title][0])
    assert [title.rpartition(" ")[2] for title in by_count] == ["25", "30", "35", "40"]
    rows = [text for text in read_texts(plots[0]) if text in {"grill", "soul", "café"}]
    assert rows == ["grill", "café", "soul"]  # the most frequent first
