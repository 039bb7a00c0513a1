from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.reports.plots_units import FIRST, draw_running_means
from recbias.reports.run import read_run
from recbias.reports.svg import FileNames, Plot
from reports.plots.svg_reading import find_elements, read_texts, read_tooltips
from support.run_folders import HOSTILE, RunSpec, make_run

METRICS = ("nDCG", "HR", "log_popularity_difference", "ARP")


def draw(folder: Path, world: RunSpec) -> list[Plot]:
    run, names = read_run(make_run(folder, world)), FileNames()
    return list(draw_running_means(run, "ml-1m", names.free))


def read_curve(plot: Plot, number: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    points = find_elements(plot, "polyline", "curve")[number].get("points", "")
    return np.array([point.split(",") for point in points.split()], dtype=np.float64)


def test_hit_rate_and_every_popularity_metric_of_users_have_a_plot(tmp_path: Path) -> None:
    plots = draw(tmp_path, RunSpec(metrics=METRICS))
    assert [plot.name for plot in plots] == [
        "running-mean-hr-10",
        "running-mean-log-popularity-difference-10",
        "running-mean-arp-10",
    ]
    assert all(len(find_elements(plot, "polyline", "curve")) == 7 for plot in plots)


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


def test_curves_run_over_the_whole_axis_and_settle(tmp_path: Path) -> None:
    plot = draw(tmp_path, RunSpec(metrics=METRICS))[1]
    curve = read_curve(plot, 0)
    assert curve[0, 0] == pytest.approx(60 + (456 - 60) * FIRST / 200, abs=0.1)
    assert curve[-1, 0] == 456
    assert np.abs(np.diff(curve[-10:, 1])).max() < np.abs(np.diff(curve[:10, 1])).max()
    assert len(find_elements(plot, "path", "band")) == 7


@pytest.mark.parametrize(
    "world", [RunSpec(metrics=("nDCG", "HR")), RunSpec(metrics=METRICS, users=20)]
)
def test_runs_without_popularity_metric_or_with_few_users_have_no_plot(
    tmp_path: Path, world: RunSpec
) -> None:
    assert draw(tmp_path, world) == []


def test_a_model_that_is_undefined_for_all_users_is_left_out(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(models=("Random", "MostPop"), metrics=METRICS))
    units = pd.read_parquet(tmp_path / "per_unit.parquet")
    units.loc[units["model"] == "MostPop", "value"] = np.nan
    units.to_parquet(tmp_path / "per_unit.parquet", index=False)
    plots = list(draw_running_means(read_run(tmp_path), "ml-1m", FileNames().free))
    assert [len(find_elements(plot, "polyline", "curve")) for plot in plots] == [1, 1, 1]


def test_hostile_names_are_text(tmp_path: Path) -> None:
    plot = draw(tmp_path, RunSpec(models=HOSTILE, metrics=METRICS))[0]
    assert "<script" not in plot.svg
    assert "HR@10" in read_texts(plot)
