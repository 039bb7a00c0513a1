from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.reports.gallery import draw_gallery
from recbias.reports.plots_models import draw_setting_curves
from recbias.reports.run import RunTables
from recbias.reports.svg import FileNames, Plot
from reports.plots.svg_reading import find_elements, read_texts, read_tooltips
from support.swept_runs import read_swept_run


def draw(run: RunTables, dataset: str = "ml-1m") -> list[Plot]:
    return list(draw_setting_curves(run, dataset, FileNames().free))


def test_each_metric_has_a_curve_for_each_value_of_the_other_settings(tmp_path: Path) -> None:
    run = read_swept_run(tmp_path)
    plots = draw(run)
    assert [plot.name for plot in plots] == [
        "ndcg-10-by-neighbors",
        "hr-10-by-neighbors",
        "mrr-10-by-neighbors",
        "log-popularity-difference-10-by-neighbors",
    ]
    assert [plot.name for _, plot in draw_gallery(run).overview if "neighbors" in plot.name] == [
        plot.name for plot in plots
    ]
    plot = plots[0]
    assert len(find_elements(plot, "polyline", "curve")) == 2
    assert {"llm.shrink=0", "llm.shrink=10", "nDCG@10", "Neighbors"} <= set(read_texts(plot))
    assert {"5", "20", "80"} <= set(read_texts(plot))
    assert plot.title == "nDCG@10 over neighbors of ItemKNN"


def test_points_are_the_reported_values_in_the_order_of_the_setting(tmp_path: Path) -> None:
    plot = draw(read_swept_run(tmp_path))[0]
    metrics = pd.read_csv(tmp_path / "metrics.csv")
    values = metrics[metrics["metric"] == "nDCG"].set_index("model")["value"]
    tips = read_tooltips(plot, "circle")
    assert [tip.partition(": ")[0] for tip in tips[:3]] == [
        f"llm.shrink=0, {n}" for n in (5, 20, 80)
    ]
    for tip, n in zip(tips[:3], (5, 20, 80), strict=True):
        assert tip.partition(": ")[2].startswith(f"{values[f'knn {n} 0']:.4f} (95% interval")
    circles = find_elements(plot, "circle")
    xs = [float(circle.get("cx", "")) for circle in circles[:3]]
    ys = [float(circle.get("cy", "")) for circle in circles[:3]]
    assert xs == sorted(xs)
    assert sorted(range(3), key=lambda at: -ys[at]) == sorted(
        range(3), key=lambda at: values[f"knn {(5, 20, 80)[at]} 0"]
    )
