from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.plots.drawing.svg import Figure
from recbias.reports.plots.search_progress import best_so_far, progress
from recbias.reports.views.trials import Search, searches
from support.search_rows import searched

SVG = "{http://www.w3.org/2000/svg}"


def search(folder: Path, figures: list[float], **how: Any) -> Search:
    rows = [
        (each, "failed" if math.isnan(each) else "done", {"a": at})
        for at, each in enumerate(figures)
    ]
    return searches(searched(folder, rows=rows, **how))[0]


def elements(figure: Figure | None, kind: str) -> list[ET.Element]:
    assert figure is not None
    root = ET.fromstring(figure.document())
    return list(root.iter(f"{SVG}{kind}"))


@pytest.mark.parametrize(
    ("direction", "numbers"),
    [("higher", [1, 3]), ("lower", [1, 2, 4]), ("zero", [1, 2])],
)
def test_the_best_so_far_follows_the_direction(
    tmp_path: Path, direction: str, numbers: list[int]
) -> None:
    found = search(tmp_path, [0.2, 0.1, 0.5, -0.3, 0.4], told={"direction": direction})
    assert [each.number for each in best_so_far(found)] == numbers


def test_every_trial_that_was_done_is_a_point(tmp_path: Path) -> None:
    figure = progress(searches(searched(tmp_path))[0], name="x")
    said = [each.findtext(f"{SVG}title") for each in elements(figure, "circle")]
    assert said == ["trial 1: 0.2000", "trial 3: 0.3500", "trial 5: 0.3000"]
    radii = [each.get("r") for each in elements(figure, "circle")]
    assert radii == ["4", "6", "4"]


def test_the_others_stand_below_without_a_figure(tmp_path: Path) -> None:
    figure = progress(searches(searched(tmp_path))[0], name="x")
    marks = [each.findtext(f"{SVG}title") for each in elements(figure, "rect")]
    assert marks[1:] == ["trial 2: pruned", "trial 4: failed"]
    assert figure is not None
    assert "pruned or failed" in figure.caption


def test_the_line_is_a_stair_to_the_last_trial(tmp_path: Path) -> None:
    (line,) = elements(progress(search(tmp_path, [0.1, 0.3, 0.5, 0.2]), name="x"), "polyline")
    points = [tuple(map(float, each.split(","))) for each in line.get("points", "").split()]
    xs, ys = zip(*points, strict=True)
    # trials 1, 2 and 3 are each better; then the line goes on to trial 4
    assert len(points) == 6
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True)
    assert len(set(ys)) == 3


@pytest.mark.parametrize("figures", [[0.5], [0.0, 0.0, 0.0], [1e-9, 2e-9, 3e-9], [-5.0, 7.0, 9.0]])
def test_any_figures_are_inside(tmp_path: Path, figures: list[float]) -> None:
    found = search(tmp_path, figures, told={"trial": 1})
    drawn = progress(found, name="x")
    for each in elements(drawn, "circle"):
        assert 0 < float(each.get("cx", "")) < 480
        assert 30 < float(each.get("cy", "")) < 270


def test_many_trials_are_one_tick_in_so_many(tmp_path: Path) -> None:
    found = search(tmp_path, [each / 300 for each in range(300)])
    ticks = [each.text for each in elements(progress(found, name="x"), "text")]
    assert {"100", "200", "300"} <= set(ticks)
    assert len(ticks) < 30


def test_nothing_is_drawn_where_no_way_is_better(tmp_path: Path) -> None:
    found = searches(searched(tmp_path))[0]
    assert progress(replace(found, direction="none"), name="x") is None


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300])
def test_trials_without_a_finite_figure_are_left_out(tmp_path: Path, value: float) -> None:
    rows = [(0.2, "done", {"a": 1}), (value, "done", {"a": 2}), (0.4, "done", {"a": 3})]
    for best in (2, 3):
        folder = tmp_path / f"{best}"
        (search,) = searches(searched(folder, rows=rows, told={"trial": best}))
        figure = progress(search, name="a")
        assert figure is not None
        assert "inf" not in figure.body.replace("infinite", "")
        assert "1 value that is infinite" in figure.caption
    (search,) = searches(searched(tmp_path / "none", rows=rows[1:2], told={"trial": 1}))
    assert progress(search, name="a") is None
