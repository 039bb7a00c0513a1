from __future__ import annotations

from pathlib import Path
from typing import Any

from recbias.reports.plots_units import draw_detectors
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_marks
from support.plot_rows import MODELS, Measure, write_run


def expose(label: str, value: float, name: str = "REC-ST", **parameters: Any) -> Measure:
    figures = {("", ""): (value, 0.01)}
    return Measure(name, figures, {"label": label, **parameters}, "lower", spread=0.05)


def draw(folder: Path, *measures: Measure) -> list[Plot]:
    return list(draw_detectors(write_run(folder, measures), "ml-1m", str))


def test_each_model_has_a_mark_for_each_detector(tmp_path: Path) -> None:
    (plot,) = draw(tmp_path, expose("ngim.gender", 0.6), expose("bert.gender", 0.2))
    ngim, bert = (find_marks(plot, f", {name}:") for name in ("ngim", "bert"))
    assert len(ngim) == len(bert) == len(MODELS)
    assert find_marks(plot, "MostPop, bert: 0.250 (95% interval 0.240 to 0.260)")
    assert all(b[0] < n[0] for b, n in zip(bert.values(), ngim.values(), strict=True))
    assert "gender: the detectors differ most for" in plot.caption
    assert "ngim and bert by 0.400" in plot.caption
