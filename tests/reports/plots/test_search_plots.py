from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.gallery import (
    draw_search_progress,
    draw_setting_importance,
    list_improvements,
)
from recbias.reports.llm import Search, collect_searches
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    find_elements,
    read_marks,
    read_points,
    read_tooltips,
)
from support.models.search_rows import write_search_run


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
