from __future__ import annotations

from pathlib import Path
from typing import Any

from recbias.reports.plots_units import draw_detectors
from recbias.reports.svg import Plot
from reports.plots.svg_reading import find_marks, read_texts
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


def test_each_kind_has_a_panel_and_each_metric_a_plot(tmp_path: Path) -> None:
    measures = [
        *(expose(f"bert.{kind}", 0.2) for kind in ("gender", "race")),
        *(expose(f"judge.{kind}", 0.1) for kind in ("gender", "race")),
        *(expose(f"{name}.gender", 0.4, "HIT_BAD") for name in ("bert", "judge")),
    ]
    both, hit = draw(tmp_path, *measures)
    texts = read_texts(both)
    assert texts.index("gender") < texts.index("race")
    assert texts.count("MostPop") == 2
    assert (both.title, hit.title) == ("REC-ST by each detector", "HIT_BAD by each detector")
    assert "race" not in read_texts(hit)


def test_other_settings_are_part_of_the_name(tmp_path: Path) -> None:
    strict = expose("ngim.gender_score", 0.3, threshold=0.7)
    (plot,) = draw(tmp_path, expose("ngim.gender", 0.6), strict, expose("ngim.gender_score", 0.5))
    assert {"ngim", "ngim, from 0.7", "ngim, graded"} <= set(read_texts(plot))


def test_one_detector_has_no_plot(tmp_path: Path) -> None:
    assert draw(tmp_path, expose("ngim.gender", 0.6), expose("ngim.race", 0.2)) == []
    assert draw(tmp_path / "none") == []
