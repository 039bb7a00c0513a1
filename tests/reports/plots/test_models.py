from __future__ import annotations

from pathlib import Path

from recbias.reports.plots import draw_scatters
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from reports.plots.svg_reading import (
    read_marks,
)
from support.run_folders import RunSpec, make_run


def draw(folder: Path, world: RunSpec | None = None) -> Plot:
    if world is not None:
        make_run(folder, world)
    return next(draw_scatters(read_run(folder), "ml-1m", str))


def test_better_models_stand_further_right_and_more_popular_ones_higher(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RunSpec(models=("Random", "MostPop", "PureSVD"))))
    assert points == sorted(points, key=lambda point: point[0])  # 0.01, 0.16, 0.31
    assert points == sorted(points, key=lambda point: -point[1])  # -0.6, -0.3, 0.0
