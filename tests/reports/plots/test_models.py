from __future__ import annotations

from pathlib import Path

from recbias.reports.gallery import draw_gallery
from recbias.reports.plots import draw_scatters, draw_setting_curves
from recbias.reports.run import RunTables, read_run
from recbias.reports.svg import FileNames, Plot
from reports.plots.svg_reading import (
    find_elements,
    read_marks,
    read_texts,
)
from support.run_folders import RunSpec, make_run
from support.swept_runs import read_swept_run


def draw(folder: Path, world: RunSpec | None = None) -> Plot:
    if world is not None:
        make_run(folder, world)
    return next(draw_scatters(read_run(folder), "ml-1m", str))


def test_better_models_stand_further_right_and_more_popular_ones_higher(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RunSpec(models=("Random", "MostPop", "PureSVD"))))
    assert points == sorted(points, key=lambda point: point[0])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: -point[1])  # -0.6, -0.3, 0.0


def draw_of_setting_curves(run: RunTables, dataset: str = "ml-1m") -> list[Plot]:
    return list(draw_setting_curves(run, dataset, FileNames().free))


def test_each_metric_has_a_curve_for_each_value_of_the_other_settings(tmp_path: Path) -> None:
    run = read_swept_run(tmp_path)
    plots = draw_of_setting_curves(run)
    assert [plot.name for plot in plots] == [
        "ndcg-10-by-neighbors",
        "hr-10-by-neighbors",
        "mrr-10-by-neighbors",
        "log-popularity-difference-10-by-neighbors",
    ]
    assert [plot.name for plot in draw_gallery(run).plots if "neighbors" in plot.name] == [
        plot.name for plot in plots
    ]
    plot = plots[0]
    assert len(find_elements(plot, "polyline", "curve")) == 2
    assert {"llm.shrink=0", "llm.shrink=10", "nDCG@10", "Neighbors"} <= set(read_texts(plot))
    assert {"5", "20", "80"} <= set(read_texts(plot))
    assert plot.title == "nDCG@10 over neighbors of ItemKNN"
