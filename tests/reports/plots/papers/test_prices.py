from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots_prompts import compute_neutral, draw_prices
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_marks, read_texts
from support.plot_rows import LEVELS, MODELS, Measure, make_shares, write_run
from support.run_folders import HOSTILE, RunSpec


def draw(folder: Path, measure: Measure, world: RunSpec | None = None) -> Plot:
    (plot,) = draw_prices(write_run(folder, [measure], world), "ml-1m", str)
    return plot


def test_each_level_of_each_model_has_a_mark_for_each_label(tmp_path: Path) -> None:
    plot = draw(tmp_path, make_shares())
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


def test_undefined_shares_are_omitted(tmp_path: Path) -> None:
    measure = make_shares()
    figures = {**measure.figures, ("race=black", "price=$"): (math.nan, 0.0)}
    plot = draw(tmp_path / "some", replace(measure, figures=figures))
    assert len(find_marks(plot)) == len(MODELS) * 7
    undefined = dict.fromkeys(measure.figures, (math.nan, 0.0))
    with pytest.raises(MissingEvidence, match="no defined share"):
        draw(tmp_path / "none", replace(measure, figures=undefined))


def test_hostile_labels_are_text(tmp_path: Path) -> None:
    world = RunSpec(models=HOSTILE, metrics=("nDCG",), users=5, items=20)
    plot = draw(tmp_path, make_shares("x", HOSTILE[:3]), world)
    assert "<script" not in plot.svg
    assert "<script>alert(1)</script>" in read_texts(plot)


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
