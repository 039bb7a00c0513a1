from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots_models import OTHER_BIASES, draw_scatter, pair_variants
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
from support.plot_rows import EXPOSURE, Measure, make_group_measure, write_run
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run


def draw(folder: Path, world: RunSpec | None = None) -> Plot:
    if world is not None:
        make_run(folder, world)
    return draw_scatter(read_run(folder), "ml-1m", name="s")


def test_better_models_stand_further_right_and_more_popular_ones_higher(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RunSpec(models=("Random", "MostPop", "PureSVD"))))
    assert points == sorted(points, key=lambda point: point[0])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: -point[1])  # -0.6, -0.3, 0.0


def test_a_horizontal_line_is_drawn_where_there_is_no_bias(tmp_path: Path) -> None:
    plot = draw(tmp_path, RunSpec(models=("Random", "MostPop", "ItemKNN", "UserKNN")))
    (line,) = find_elements(plot, "line", "zero")
    assert line.get("y1") == line.get("y2")
    marks = [y for _, y in read_marks(plot)]  # -0.6, -0.3, 0.0 and 0.3
    assert max(marks[:2]) > float(line.get("y1", "")) > marks[3]
    assert "The dotted line is 0: no bias." in plot.caption


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


def test_a_variant_without_a_plain_model_has_no_line(tmp_path: Path) -> None:
    write_models(tmp_path, [make_wok("a", "mitigate"), make_wok("b", "minimize")])
    plot = draw(tmp_path)
    assert not find_elements(plot, "line", "pair")
    assert "Solid lines" not in plot.caption


def test_tooltips_have_value_and_interval(tmp_path: Path) -> None:
    tooltips = read_tooltips(draw(tmp_path, RunSpec(models=HOSTILE)))
    for tooltip, label in zip(tooltips, HOSTILE, strict=True):
        assert tooltip.startswith(to_line(label))
    assert "95% interval" in tooltips[0]


def test_model_without_both_values_is_omitted(tmp_path: Path) -> None:
    path = make_run(tmp_path) / "metrics.csv"
    frame = pd.read_csv(path)
    frame.loc[(frame["model"] == "EASE") & (frame["metric"] == "nDCG"), "value"] = None
    frame.to_csv(path, index=False)
    assert len(read_marks(draw(tmp_path))) == 6


def test_missing_intervals_have_no_lines(tmp_path: Path) -> None:
    path = make_run(tmp_path) / "metrics.csv"
    pd.read_csv(path).assign(ci_low=None, ci_high=None).to_csv(path, index=False)
    plot = draw(tmp_path)
    assert not find_elements(plot, "line", "whisker")
    assert "95%" not in plot.caption


@pytest.mark.parametrize(
    ("metrics", "message"),
    [(("nDCG",), "no metric of popularity"), (("ARP",), "no metric of accuracy")],
)
def test_missing_metric_is_a_reason(
    tmp_path: Path, metrics: tuple[str, ...], message: str
) -> None:
    with pytest.raises(MissingEvidence, match=message) as caught:
        draw(tmp_path, RunSpec(metrics=metrics))
    assert caught.value.remedy.startswith("measure ")


@pytest.mark.parametrize("metric", ["ARP", "Gini"])
def test_any_popularity_metric_is_used(tmp_path: Path, metric: str) -> None:
    plot = draw(tmp_path, RunSpec(metrics=("HR", metric)))
    assert plot.title == f"{metric}@10 against HR@10"


@pytest.mark.parametrize("models", [("only",), NINETEEN_MODELS])
def test_any_number_of_models_is_drawn_and_labelled(
    tmp_path: Path, models: tuple[str, ...]
) -> None:
    plot = draw(tmp_path, RunSpec(models=models))
    assert len(read_marks(plot)) == len(models)
    assert set(models) <= set(read_texts(plot))


def test_stereotypes_are_shown_if_the_run_measures_them(tmp_path: Path) -> None:
    run = write_run(tmp_path, [EXPOSURE])
    plot = draw_scatter(run, "ml-1m", name="s", family=OTHER_BIASES[0])
    assert plot.title == "REC-ST against nDCG@10"
    assert "lower is better" in plot.body


def test_exposure_is_shown_by_its_first_metric_of_a_fixed_order(tmp_path: Path) -> None:
    values = {("", ""): (0.7, 0.01)}
    measures = [
        Measure(name, values, direction=direction, spread=0.1)
        for name, direction in (("EXP", "higher"), ("AWRF", "higher"))
    ]
    plot = draw_scatter(write_run(tmp_path, measures), "ml-1m", name="s", family=OTHER_BIASES[2])
    assert plot.title == "AWRF against nDCG@10"
    assert "higher is better" in plot.body


def test_bias_without_a_total_is_shown_by_its_first_group(tmp_path: Path) -> None:
    groups = {("race=black", "price=$"): (0.7, 0.1), ("race=white", "price=$"): (0.3, 0.1)}
    run = write_run(tmp_path, [Measure("price_percentage", groups, direction="zero", spread=0.1)])
    plot = draw_scatter(run, "ml-1m", name="s", family=OTHER_BIASES[1])
    assert plot.title == "price_percentage race=black price=$ against nDCG@10"


def test_metric_by_group_is_not_the_accuracy_of_a_model(tmp_path: Path) -> None:
    world = RunSpec(metrics=("ARP",), users=20)
    run = write_run(tmp_path, [make_group_measure(("gender=F", "gender=M"))], world)
    with pytest.raises(MissingEvidence, match="no metric of accuracy"):
        draw_scatter(run, "ml-1m", name="s")
