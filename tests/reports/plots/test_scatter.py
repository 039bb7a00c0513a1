from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.plots_models import draw_scatter, pair_variants
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from recbias.reports.wording import to_line
from reports.plots.svg_reading import (
    find_elements,
    find_marks,
    read_marks,
    read_texts,
    read_tooltips,
)
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run


def draw(folder: Path, world: RunSpec | None = None) -> Plot:
    if world is not None:
        make_run(folder, world)
    return draw_scatter(read_run(folder), "ml-1m", name="s")


def test_better_models_stand_further_right_and_more_popular_ones_higher(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RunSpec(models=("Random", "MostPop", "PureSVD"))))
    assert points == sorted(points, key=lambda point: point[0])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: -point[1])  # -0.6, -0.3, 0.0


def write_models(folder: Path, models: list[dict[str, Any]]) -> None:
    make_run(folder, RunSpec(models=[model["label"] for model in models]))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"models": models}))


def make_wok(label: str, mitigation: str | None = None, **llm: Any) -> dict[str, Any]:
    settings = {"mitigation": mitigation, "llm": {"model": "small", "prices": None, **llm}}
    return {"label": label, "name": "WOK", "parameters": settings}


def test_mitigated_variants_are_joined_with_the_model_of_the_same_settings(tmp_path: Path) -> None:
    other = {"label": "b", "name": "Other", "parameters": {"mitigation": None}}
    models = [
        make_wok("x", "minimize", prices={"input": 1}),  # what it costs changes no reply
        make_wok("a"),
        make_wok("a-mitigate", "mitigate", model="large"),  # another model, whatever its label
        make_wok("y", "mitigate"),
        other,
    ]
    write_models(tmp_path, models)
    assert pair_variants(read_run(tmp_path)) == [("a", "x"), ("a", "y")]
    plot = draw(tmp_path)
    marks = find_marks(plot)
    named = {title.partition(":")[0]: mark for title, mark in marks.items()}
    lines = [
        tuple(float(line.get(end, "")) for end in ("x1", "y1", "x2", "y2"))
        for line in find_elements(plot, "line", "pair")
    ]
    assert lines == [(*named["a"], *named["x"]), (*named["a"], *named["y"])]
    assert "Solid lines join models with their mitigated variants." in plot.caption


def test_tooltips_have_value_and_interval(tmp_path: Path) -> None:
    tooltips = read_tooltips(draw(tmp_path, RunSpec(models=HOSTILE)))
    for tooltip, label in zip(tooltips, HOSTILE, strict=True):
        assert tooltip.startswith(to_line(label))
    assert "95% interval" in tooltips[0]


@pytest.mark.parametrize("models", [("only",), NINETEEN_MODELS])
def test_any_number_of_models_is_drawn_and_labelled(
    tmp_path: Path, models: tuple[str, ...]
) -> None:
    plot = draw(tmp_path, RunSpec(models=models))
    assert len(read_marks(plot)) == len(models)
    assert set(models) <= set(read_texts(plot))
