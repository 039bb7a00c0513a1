from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from recbias.reports.plots_units import draw_running_means
from recbias.reports.run import read_run
from recbias.reports.svg import FileNames, Plot
from reports.plots.svg_reading import read_tooltips
from support.run_folders import RunSpec, make_run

METRICS = ("nDCG", "HR", "log_popularity_difference", "ARP")


def draw(folder: Path, world: RunSpec) -> list[Plot]:
    run, names = read_run(make_run(folder, world)), FileNames()
    return list(draw_running_means(run, "ml-1m", names.free))


def test_the_right_end_is_the_reported_mean_and_its_standard_error(tmp_path: Path) -> None:
    plot = draw(tmp_path, RunSpec(models=("Random", "MostPop"), metrics=METRICS))[1]
    metrics = pd.read_csv(tmp_path / "metrics.csv")
    rows = metrics[metrics["metric"] == "log_popularity_difference"].set_index("model")
    for tooltip, model in zip(read_tooltips(plot), ("Random", "MostPop"), strict=True):
        error = rows["std"][model] / np.sqrt(200)
        value = f"{rows['value'][model]:.4f}".replace("-", "\N{MINUS SIGN}")
        assert tooltip.replace("-", "\N{MINUS SIGN}") == (
            f"{model}: {value} (standard error {error:.4f})"
        )


def test_the_right_end_is_the_mean_over_folds(tmp_path: Path) -> None:
    plot = draw(tmp_path, RunSpec(models=("Random", "MostPop"), metrics=METRICS, folds=3))[1]
    metrics = pd.read_csv(tmp_path / "metrics.csv")
    rows = metrics[(metrics["metric"] == "log_popularity_difference") & (metrics["fold"] == "all")]
    (value,) = rows[rows["model"] == "MostPop"]["value"]
    assert f"MostPop: {value:.4f} ".replace("-", "\N{MINUS SIGN}") in "".join(
        read_tooltips(plot)
    ).replace("-", "\N{MINUS SIGN}")
