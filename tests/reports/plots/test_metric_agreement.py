from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.reports.plots_models import draw_metric_agreement
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import read_tooltips, require_plot
from support.run_folders import SEVEN_MODELS, RunSpec, make_run


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


def test_matrix_has_each_pair_twice(tmp_path: Path) -> None:
    plot = require_plot(draw_world(tmp_path, ("nDCG", "HR", "MRR", "ARP")))
    tooltips = read_tooltips(plot)
    assert len(tooltips) == 4 * 3
    assert "between 4 metrics over 7 models" in plot.caption
    for pair in ("nDCG@10 and HR@10", "HR@10 and nDCG@10"):
        assert sum(tooltip.startswith(f"{pair}: tau-b") for tooltip in tooltips) == 1
