from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.setting_importance import draw_setting_importance
from recbias.reports.views.trials import collect_searches
from reports.plots.svg_reading import find_elements, read_texts, read_tooltips, require_plot
from support.search_rows import write_search_run


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
