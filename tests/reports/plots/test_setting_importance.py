from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from recbias.reports.plots.setting_importance import importance
from recbias.reports.views.trials import Search, searches
from support.search_rows import searched

SVG = "{http://www.w3.org/2000/svg}"


def search(folder: Path, weights: dict[str, float], **how: object) -> Search:
    return searches(searched(folder, importances=weights, **how))[0]


def test_bars_are_as_long_as_the_shares_and_the_longest_comes_first(tmp_path: Path) -> None:
    figure = importance(search(tmp_path, {"b": 0.25, "a": 0.75}), name="x")
    assert figure is not None
    root = ET.fromstring(figure.document())
    bars = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "bar"]
    assert [each.findtext(f"{SVG}title") for each in bars] == ["a: 0.75", "b: 0.25"]
    first, second = (float(each.get("width", "")) for each in bars)
    assert abs(first - 3 * second) < 0.3  # places have one decimal
    assert float(bars[0].get("y", "")) < float(bars[1].get("y", ""))


def test_a_setting_of_no_importance_has_a_bar_of_no_length(tmp_path: Path) -> None:
    figure = importance(search(tmp_path, {"a": 1.0, "b": 0.0}), name="x")
    assert figure is not None
    assert 'width="0"' in figure.inline()
    assert "0.00" in figure.inline()


def test_nothing_is_drawn_where_nothing_can_be_told(tmp_path: Path) -> None:
    assert importance(search(tmp_path, {"a": math.nan}), name="x") is None


def test_the_caption_says_what_the_shares_are_of(tmp_path: Path) -> None:
    weights = {"a": 1.0}
    pruned = importance(search(tmp_path / "a", weights), name="x")
    # three trials are done and one was pruned; the one that failed has no figure
    assert pruned is not None
    assert "the best nDCG@10 of an epoch over 4 trials" in pruned.caption
    rows = [(0.1 * each, "done", {"a": each}) for each in range(9)]
    whole = importance(search(tmp_path / "b", weights, rows=rows, told={"metric": "HR"}), name="x")
    assert whole is not None
    assert "variation of HR@10 over 9 trials" in whole.caption


def test_long_names_are_cut_and_stay_inside(tmp_path: Path) -> None:
    figure = importance(search(tmp_path, {"a" * 90: 1.0, "<b>": 0.0}), name="x")
    assert figure is not None
    assert "a" * 25 not in re.sub("<title>.*?</title>", "", figure.inline())
    ends = [float(each) for each in re.findall(r' x="([\d.]+)"', figure.inline())]
    assert max(ends) < figure.width
