from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.reports.plots_models import STEPS, choose_step, draw_metric_agreement
from recbias.reports.run import read_run
from recbias.reports.svg import Plot, read_style_sheet
from recbias.reports.tables import MOST_METRICS
from reports.plots.svg_reading import find_elements, read_tooltips, require_plot
from support.plot_rows import Measure, make_shares, write_run
from support.run_folders import HOSTILE, SEVEN_MODELS, RunSpec, make_run


def draw(folder: Path) -> Plot | None:
    return draw_metric_agreement(read_run(folder), "ml-1m", name="a")


def draw_world(
    folder: Path, metrics: tuple[str, ...], models: tuple[str, ...] = SEVEN_MODELS
) -> Plot | None:
    return draw(make_run(folder, RunSpec(models=models, metrics=metrics, users=9, items=20)))


def draw_values(folder: Path, values: dict[str, list[float]]) -> Plot | None:
    """Return the plot of a run of four models with these values."""
    make_run(folder, RunSpec(models=SEVEN_MODELS[:4], metrics=tuple(values), users=5, items=20))
    set_values(folder, values)
    return draw(folder)


def set_values(folder: Path, values: dict[str, list[float]]) -> None:
    frame = pd.read_csv(folder / "metrics.csv", keep_default_na=False)
    for metric, column in values.items():
        frame.loc[frame["metric"] == metric, "value"] = column
    frame.to_csv(folder / "metrics.csv", index=False)


def test_tau_equals_the_hand_calculation(tmp_path: Path) -> None:
    # b is a reversed; c ties its first two: of six pairs five agree, 5 / sqrt(6 * 5) = 0.913
    values = {"a": [1.0, 2, 3, 4], "b": [4.0, 3, 2, 1], "c": [1.0, 1, 2, 3]}
    tooltips = read_tooltips(draw_values(tmp_path, values))
    assert "a@10 and b@10: tau-b −1 over 4 models" in tooltips
    assert "a@10 and c@10: tau-b 0.91 over 4 models" in tooltips
    assert "c@10 and b@10: tau-b −0.91 over 4 models" in tooltips


def test_colours_run_from_one_end_to_the_other(tmp_path: Path) -> None:
    values = {"a": [1.0, 2, 3, 4], "b": [4.0, 3, 2, 1], "c": [1.0, 2, 3, 4]}
    plot = draw_values(tmp_path, values)
    assert len(find_elements(plot, "rect", "step-8")) == 2 + 1  # a and c, and the key
    assert len(find_elements(plot, "rect", "step-0")) == 4 + 1
    sheet = read_style_sheet()
    assert all(sheet.count(f".step-{step} ") == 2 for step in range(STEPS))
    assert choose_step(5.0) == STEPS - 1


def test_matrix_has_each_pair_twice(tmp_path: Path) -> None:
    plot = require_plot(draw_world(tmp_path, ("nDCG", "HR", "MRR", "ARP")))
    tooltips = read_tooltips(plot)
    assert len(tooltips) == 4 * 3
    assert "between 4 metrics over 7 models" in plot.caption
    for pair in ("nDCG@10 and HR@10", "HR@10 and nDCG@10"):
        assert sum(tooltip.startswith(f"{pair}: tau-b") for tooltip in tooltips) == 1


@pytest.mark.parametrize(
    ("models", "metrics"),
    [
        (SEVEN_MODELS[:3], ("nDCG", "HR", "MRR")),  # three models
        (SEVEN_MODELS, ("nDCG", "HR")),  # two metrics
    ],
)
def test_too_few_models_or_metrics_have_no_plot(
    tmp_path: Path, models: tuple[str, ...], metrics: tuple[str, ...]
) -> None:
    assert draw_world(tmp_path, metrics, models) is None


def test_metric_equal_for_all_models_is_undefined(tmp_path: Path) -> None:
    make_run(
        tmp_path, RunSpec(models=SEVEN_MODELS, metrics=("nDCG", "HR", "MRR"), users=9, items=20)
    )
    set_values(tmp_path, {"HR": [1.0] * 7})
    plot = require_plot(draw(tmp_path))
    assert sum("n/a" in tooltip for tooltip in read_tooltips(plot)) == 4
    assert "n/a: a metric is equal for all models" in plot.caption


def test_of_many_metrics_the_first_are_drawn(tmp_path: Path) -> None:
    plot = require_plot(draw_world(tmp_path, tuple(f"m{number}" for number in range(20))))
    assert len(read_tooltips(plot)) == MOST_METRICS * (MOST_METRICS - 1)
    assert "4 more metrics are not drawn." in plot.caption


def test_hostile_metric_names_are_text(tmp_path: Path) -> None:
    names = tuple(label.replace("(", "").replace(")", "") for label in HOSTILE)
    assert "<script" not in require_plot(draw_world(tmp_path, names)).svg


@pytest.mark.parametrize(
    "measure",
    [
        make_shares(),  # values by group and target
        Measure("nDCG", {("", ""): (0.1, 0.0)}, {"by": "x", "gap": "std"}, spread=0.1),
    ],
)
def test_values_by_group_and_gaps_are_excluded(tmp_path: Path, measure: Measure) -> None:
    world = RunSpec(models=SEVEN_MODELS, metrics=("nDCG", "HR"), users=5, items=20)
    run = write_run(tmp_path, [measure], world)
    assert draw_metric_agreement(run, "ml-1m", name="a") is None
