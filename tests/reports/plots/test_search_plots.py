from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.gallery import (
    draw_search_plots,
    draw_search_progress,
    draw_setting_importance,
    list_improvements,
)
from recbias.reports.llm import Search, collect_searches
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    read_marks,
    read_points,
    read_texts,
    read_tooltips,
    require_plot,
)
from support.models.search_rows import add_search, write_search_run
from support.run_folders import HOSTILE, RunSpec, make_run


def make_search(folder: Path, values: list[float], **options: Any) -> Search:
    rows = [
        (value, "failed" if math.isnan(value) else "done", {"a": number})
        for number, value in enumerate(values)
    ]
    return collect_searches(write_search_run(folder, rows=rows, **options))[0]


@pytest.mark.parametrize(
    ("direction", "numbers"), [("higher", [1, 3]), ("lower", [1, 2, 4]), ("zero", [1, 2])]
)
def test_improvements_follow_the_direction(
    tmp_path: Path, direction: str, numbers: list[int]
) -> None:
    search = make_search(tmp_path, [0.2, 0.1, 0.5, -0.3, 0.4], entry={"direction": direction})
    assert [trial.number for trial in list_improvements(search)] == numbers


def test_every_finished_trial_is_a_point(tmp_path: Path) -> None:
    plot = draw_search_progress(collect_searches(write_search_run(tmp_path))[0], name="x")
    assert read_tooltips(plot, "circle") == [
        *("trial 1: 0.2000", "trial 3: 0.3500", "trial 5: 0.3000")
    ]
    assert [circle.get("r") for circle in find_elements(plot, "circle")] == ["4", "6", "4"]


def test_trials_without_a_value_are_marked_below(tmp_path: Path) -> None:
    plot = require_plot(
        draw_search_progress(collect_searches(write_search_run(tmp_path))[0], name="x")
    )
    assert read_tooltips(plot, "rect") == ["trial 2: pruned", "trial 4: failed"]
    assert "pruned or failed" in plot.caption


def test_line_of_the_best_rises_in_steps_to_the_last_trial(tmp_path: Path) -> None:
    plot = draw_search_progress(make_search(tmp_path, [0.1, 0.3, 0.5, 0.2]), name="x")
    (line,) = find_elements(plot, "polyline")
    xs, ys = zip(*read_points(line), strict=True)
    # trials 1, 2 and 3 are each better; then the line continues to trial 4
    assert len(xs) == 6
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True)
    assert len(set(ys)) == 3


@pytest.mark.parametrize("values", [[0.5], [0.0, 0.0, 0.0], [1e-9, 2e-9, 3e-9], [-5.0, 7.0, 9.0]])
def test_points_lie_inside_for_any_values(tmp_path: Path, values: list[float]) -> None:
    search = make_search(tmp_path, values, entry={"trial": 1})
    for x, y in read_marks(draw_search_progress(search, name="x")):
        assert 0 < x < 480
        assert 30 < y < 270


def test_many_trials_have_few_ticks(tmp_path: Path) -> None:
    search = make_search(tmp_path, [number / 300 for number in range(300)])
    texts = read_texts(draw_search_progress(search, name="x"))
    assert {"100", "200", "300"} <= set(texts)
    assert len(texts) < 30


def test_metric_without_a_direction_has_no_plot(tmp_path: Path) -> None:
    search = collect_searches(write_search_run(tmp_path))[0]
    assert draw_search_progress(replace(search, direction="none"), name="x") is None


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_trials_that_fit_no_axis_are_omitted(tmp_path: Path, value: float) -> None:
    rows = [(0.2, "done", {"a": 1}), (value, "done", {"a": 2}), (0.4, "done", {"a": 3})]
    for best in (2, 3):
        (search,) = collect_searches(
            write_search_run(tmp_path / f"{best}", rows=rows, entry={"trial": best})
        )
        plot = require_plot(draw_search_progress(search, name="a"))
        assert "inf" not in plot.body.replace("infinite", "")
        assert "1 value that is infinite" in plot.caption
    (search,) = collect_searches(
        write_search_run(tmp_path / "none", rows=rows[1:2], entry={"trial": 1})
    )
    assert draw_search_progress(search, name="a") is None


def draw(folder: Path, importances: dict[str, float], **options: Any) -> Plot | None:
    (search,) = collect_searches(write_search_run(folder, importances=importances, **options))
    return draw_setting_importance(search, name="x")


def test_bars_are_as_long_as_the_shares_the_longest_first(tmp_path: Path) -> None:
    plot = draw(tmp_path, {"b": 0.25, "a": 0.75})
    assert read_tooltips(plot) == ["a: 0.75", "b: 0.25"]
    longest, shortest = find_elements(plot, "rect", "bar")
    width = float(longest.get("width", ""))
    assert width == pytest.approx(3 * float(shortest.get("width", "")), abs=0.3)
    assert float(longest.get("y", "")) < float(shortest.get("y", ""))


def test_setting_without_importance_has_an_empty_bar(tmp_path: Path) -> None:
    plot = draw(tmp_path, {"a": 1.0, "b": 0.0})
    assert find_elements(plot, "rect", "bar")[1].get("width") == "0"
    assert "0.00" in read_texts(plot)


def test_unknown_importances_have_no_plot(tmp_path: Path) -> None:
    assert draw(tmp_path, {"a": math.nan}) is None


def test_caption_names_the_target_and_the_number_of_trials(tmp_path: Path) -> None:
    # three trials are done and one was pruned; the failed one has no value
    pruned = require_plot(draw(tmp_path / "a", {"a": 1.0}))
    assert "the best nDCG@10 of an epoch over 4 trials" in pruned.caption
    rows = [(0.1 * number, "done", {"a": number}) for number in range(9)]
    plot = require_plot(draw(tmp_path / "b", {"a": 1.0}, rows=rows, entry={"metric": "HR"}))
    assert "variance of HR@10 over 9 trials" in plot.caption


def test_long_names_are_shortened_and_stay_inside(tmp_path: Path) -> None:
    plot = require_plot(draw(tmp_path, {"a" * 90: 1.0, "<b>": 0.0}))
    assert max(map(len, read_texts(plot))) < 25
    ends = [float(text.get("x", "")) for text in find_elements(plot, "text")]
    assert max(ends) < plot.width


def test_each_search_has_progress_and_importance(tmp_path: Path) -> None:
    (search,) = draw_search_plots(write_search_run(tmp_path))
    assert [plot.name for plot in search.plots] == ["search-slim", "importance-slim"]


def test_plot_without_a_known_value_is_omitted(tmp_path: Path) -> None:
    unknown = {"alpha": math.nan, "similarity": math.nan}
    (search,) = draw_search_plots(write_search_run(tmp_path, importances=unknown))
    assert [plot.name for plot in search.plots] == ["search-slim"]


def test_plot_names_are_unique(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(users=20))
    for model in (*HOSTILE, "A b", "a-b"):
        add_search(tmp_path, fit={"model": model})
    searches = draw_search_plots(read_run(tmp_path))
    names = [plot.name for search in searches for plot in search.plots]
    assert len(names) == len(set(names)) == 2 * 7
