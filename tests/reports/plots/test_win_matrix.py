from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.reports.plots_models import draw_win_matrix, sort_by_mean
from recbias.reports.run import read_run
from recbias.reports.svg import Plot
from recbias.reports.views import Comparisons, collect_comparisons
from reports.plots.svg_reading import find_elements
from support.run_folders import RunSpec, make_run


def draw(family: Comparisons) -> Plot:
    return draw_win_matrix(family, name="m")


def list_cells(plot: Plot) -> list[str]:
    squares = find_elements(plot, "rect")
    return [square.get("class", "") for square in squares if square.find("{*}title") is not None]


def compare_three(folder: Path, metric: str) -> Comparisons:
    """Return comparisons of x, y and z: z - x is significant, y differs from neither."""
    make_run(folder, RunSpec(models=("x", "y", "z"), metrics=(metric,)))
    path = folder / "significance.csv"
    means = {"x": 0.1, "y": 0.2, "z": 0.3}
    frame = pd.read_csv(path)
    frame["mean_a"], frame["mean_b"] = frame["a"].map(means), frame["b"].map(means)
    frame["difference"] = frame["mean_a"] - frame["mean_b"]
    frame["effect_size"] = frame["difference"]
    frame["significant"] = (frame["a"] + frame["b"]) == "xz"
    frame.to_csv(path, index=False)
    return collect_comparisons(read_run(folder))[0]


def test_best_model_comes_first_and_wins_are_coloured(tmp_path: Path) -> None:
    family = compare_three(tmp_path, "HR")
    assert sort_by_mean(family) == ["z", "y", "x"]
    # row z: y, x; row y: z, x; row x: z, y
    assert list_cells(draw(family)) == [
        *("maybe-better", "better", "maybe-worse", "maybe-better", "worse", "maybe-worse")
    ]
