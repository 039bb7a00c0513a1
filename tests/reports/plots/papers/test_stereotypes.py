from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from recbias.reports.plots_units import compute_box, draw_stereotypes
from recbias.reports.svg import Plot
from reports.plots.svg_reading import read_marks, read_texts, read_tooltips
from support.plot_rows import EXPOSURE, MODELS, make_exposure_units, write_run
from support.run_folders import RunSpec


def draw(folder: Path, units: Any = None, world: RunSpec | None = None) -> list[Plot]:
    return list(draw_stereotypes(write_run(folder, [EXPOSURE], world, units), "ml-1m", str))


def test_box_equals_the_hand_calculation() -> None:
    # 1 to 9 and 30: quartiles at 3.25, 5.5 and 7.75 (linear), the box is 4.5 long, whiskers reach
    # from 3.25 - 6.75 to 7.75 + 6.75 = 14.5, that is 1 to 9; the mean is 75 / 10
    box = compute_box(np.array([*range(1, 10), 30.0]))
    assert (box.low, box.q1, box.median, box.q3, box.high) == (1, 3.25, 5.5, 7.75, 9)
    assert (box.mean, box.n) == (7.5, 10)


def test_models_are_sorted_by_their_mean(tmp_path: Path) -> None:
    (plot,) = draw(tmp_path, make_exposure_units(tuple(reversed(MODELS))))
    # BERT is the first of the reversed models: a tenth at most, then MostPop and Random
    texts = read_texts(plot)
    assert [text for text in texts if text in MODELS] == ["BERT", "MostPop", "Random"]
    _, *means = read_marks(plot, "mean")  # without the key
    assert means == sorted(means)
    assert "n 60" in texts
    assert read_tooltips(plot)[0].startswith("BERT: mean 0.049, median 0.049")
    assert "Lowest mean: BERT (0.049); highest: Random (0.147)." in plot.caption
