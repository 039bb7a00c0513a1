"""Curves over an assumption, and the sentence that says where a conclusion turns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.conclusions import collect_conclusions
from recbias.reports.gallery import draw_gallery
from support.plot_rows import Measure, write_run
from support.run_folders import RunSpec

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
