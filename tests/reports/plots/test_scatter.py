from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.markup import to_line
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.scatter import OTHER_BIASES, draw_scatter
from recbias.reports.views.run_tables import read_run
from reports.plots.svg_reading import find_elements, read_marks, read_texts, read_tooltips
from support.plot_rows import EXPOSURE, Measure, make_group_measure, write_run
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run


def draw(folder: Path, world: RunSpec | None = None) -> Plot:
    if world is not None:
        make_run(folder, world)
    return draw_scatter(read_run(folder), "ml-1m", name="s")


def test_better_models_stand_higher_and_more_popular_ones_further_right(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RunSpec(models=("Random", "MostPop", "PureSVD"))))
    assert points == sorted(points, key=lambda point: -point[1])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: point[0])  # -0.6, -0.3, 0.0


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
    [
        (("nDCG",), "no metric of popularity"),
        (("ARP",), "no metric of accuracy"),
    ],
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
    assert plot.title == f"HR@10 against {metric}@10"


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
    assert plot.title == "nDCG@10 against REC-ST"
    assert "lower is better" in plot.body


def test_bias_without_a_total_is_shown_by_its_first_group(tmp_path: Path) -> None:
    groups = {("race=black", "price=$"): (0.7, 0.1), ("race=white", "price=$"): (0.3, 0.1)}
    run = write_run(tmp_path, [Measure("price_percentage", groups, direction="zero", spread=0.1)])
    plot = draw_scatter(run, "ml-1m", name="s", family=OTHER_BIASES[1])
    assert plot.title == "nDCG@10 against price_percentage race=black price=$"


def test_metric_by_group_is_not_the_accuracy_of_a_model(tmp_path: Path) -> None:
    world = RunSpec(metrics=("ARP",), users=20)
    run = write_run(tmp_path, [make_group_measure(("gender=F", "gender=M"))], world)
    with pytest.raises(MissingEvidence, match="no metric of accuracy"):
        draw_scatter(run, "ml-1m", name="s")
