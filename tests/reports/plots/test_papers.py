"""The plots of papers, of groups and of assumptions: where their marks stand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.reports.charts import Axis, Interval, Mark, Row, compute_box, draw_rows
from recbias.reports.conclusions import collect_conclusions
from recbias.reports.gallery import draw_gallery
from recbias.reports.plots import draw_group_means
from recbias.reports.plots_papers import (
    compute_exposure,
    count_recommendations,
    draw_hit_shares,
    draw_long_tail,
    draw_projections,
    draw_targets,
)
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    find_marks,
    read_marks,
    read_points,
    read_texts,
    read_tooltips,
)
from support.plot_rows import (
    LEVELS,
    MODELS,
    PROJECTION,
    SETS,
    Measure,
    make_group_measure,
    make_projection_units,
    make_shares,
    write_run,
)
from support.run_folders import RunSpec, make_run


def test_larger_values_stand_further_right_and_later_rows_lower() -> None:
    rows = [
        Row(f"row {value}", (Mark(Interval(value, value - 0.1, value + 0.1), 0, f"{value}"),))
        for value in (0.1, 0.5, 0.9)
    ]
    plot = draw_rows([Row("all"), *rows], Axis("x"), name="f", title="t", caption="c")
    points = list(find_marks(plot).values())
    assert points == sorted(points)
    assert points == sorted(points, key=lambda point: point[1])
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)
    assert "all" in read_texts(plot)


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


def test_groups_of_a_gap_are_drawn(tmp_path: Path) -> None:
    measure = make_group_measure(PAIR)
    measure = replace(measure, parameters={"by": "gender", "gap": "difference"})
    (plot,) = draw_of_group_means(tmp_path, measure)
    assert len(find_marks(plot)) == 2 * len(MODELS)


@pytest.mark.parametrize("n", [8, 12, 90])
def test_many_groups_are_rows_and_of_more_the_ends_are_drawn(tmp_path: Path, n: int) -> None:
    groups = tuple(f"age={age}&gender=F" for age in range(n))
    (plot,) = draw_of_group_means(tmp_path, make_group_measure(groups))
    texts = [text for text in read_texts(plot) if text in {*MODELS, *groups}]
    rows = {8: [*MODELS], 12: [*MODELS, *groups]}.get(n)
    if rows is None:  # the 30 highest and the 30 lowest, of values that rise with the age
        assert "The 30 highest" in read_texts(plot)
        rows = [*MODELS, *groups[: 90 - 31 : -1], *groups[29::-1]]
    assert texts[-len(rows) :] == rows  # behind the legend
    assert len(find_marks(plot)) == len(MODELS) * min(n, 60)


def test_each_level_of_each_model_has_a_mark_for_each_label(tmp_path: Path) -> None:
    (plot,) = draw_targets(write_run(tmp_path, [make_shares()]), "ml-1m", str)
    assert len(find_marks(plot)) == len(MODELS) * len(LEVELS) * 2
    assert "equal shares, 0.5" in read_texts(plot)
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


WORLD = RunSpec(models=("shop",), metrics=("nDCG",), users=12, items=30)
ITEMS = {"groups": {"of": "items", "attribute": "kind", "a": "new", "b": "old"}, "count": "clicks"}


@pytest.mark.parametrize(
    ("name", "settings", "axis", "values", "turn", "sentence"),
    [
        (
            *("propensity_sensitivity", {}, "factor", (0.2, -0.1), 1.5),
            (
                "The gap of shop to what was shown is positive unless propensities are wrong by a "
                "factor of 1.50 or more."
            ),
        ),
        (
            *("propensity_sensitivity", {"against": "mall"}, "factor", (-0.2, 0.1), math.nan),
            (
                "The gap of shop to mall stays negative even if propensities are wrong by a "
                "factor of 100."
            ),
        ),
        (
            *("examination_sensitivity", ITEMS, "exponent", (-0.2, -0.3), math.nan),
            (
                "The gap of new to old in clicks with shop stays negative even if the exponent of "
                "the position bias is 5."
            ),
        ),
        (
            *("examination_sensitivity", ITEMS, "exponent", (0.01, -0.3), 1.1),
            "The gap of new to old in clicks with shop is not shown to differ from 0.",
        ),
    ],
)
def test_a_sentence_and_a_plot_say_where_the_gap_turns(
    tmp_path: Path,
    name: str,
    settings: dict[str, Any],
    axis: str,
    values: tuple[float, float],
    turn: float,
    sentence: str,
) -> None:
    figures = {("", f"{axis}={x}"): (value, 0.05) for x, value in enumerate(values, 1)}
    figures["", "turns"] = (turn, math.nan)
    run = write_run(tmp_path / "run", [Measure(name, figures, settings)], WORLD)
    assert sentence in [conclusion.sentence for conclusion in collect_conclusions(run)]
    (plot,) = [plot for plot in draw_gallery(run).plots if "sensitivity" in plot.title]
    assert sentence in plot.caption
