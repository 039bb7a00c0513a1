from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.reports.plots_units import MOST_POINTS, draw_learning_curves
from recbias.reports.run import read_run
from recbias.reports.svg import FileNames, Plot
from reports.plots.svg_reading import find_elements, read_tooltips
from support.run_folders import RunSpec, make_run

MODELS = ("Random", "MostPop")


def make_curves(n_steps: int) -> pd.DataFrame:
    """Losses that fall linearly to 1, of two seeds that differ by 2."""
    rows = [
        ("ml-1m", model, seed, 1, 1, step, loss, scale * (2 - step / n_steps) + 2 * (seed - 1))
        for model in MODELS
        for seed in (1, 2)
        for step in range(1, n_steps + 1)
        for loss, scale in (("language_model", 1.0), ("bias", 10.0))
    ]
    columns = ["dataset", "model", "seed", "fold", "epoch", "step", "loss", "value"]
    return pd.DataFrame(rows, columns=columns)


def draw(folder: Path, curves: pd.DataFrame | None, dataset: str = "ml-1m") -> list[Plot]:
    made = make_run(folder, RunSpec(models=MODELS))
    if curves is not None:
        curves.to_csv(made / "learning_curves.csv", index=False)
    return list(draw_learning_curves(read_run(made), dataset, FileNames().free))


def test_each_loss_has_a_plot_with_a_curve_for_each_model(tmp_path: Path) -> None:
    plots = draw(tmp_path, make_curves(300))
    assert [plot.name for plot in plots] == [
        "learning-curve-language-model",
        "learning-curve-bias",
    ]
    for plot in plots:
        curves = find_elements(plot, "polyline", "curve")
        assert [len(curve.get("points", "").split()) for curve in curves] == [MOST_POINTS] * 2
    # the last point is the mean of steps 296 to 300 and of both seeds: 2 - 298 / 300 + 1
    assert read_tooltips(plots[0])[:2] == [f"{model}: 2.0067 at the end" for model in MODELS]
