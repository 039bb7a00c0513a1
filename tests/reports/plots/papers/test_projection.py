from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recbias.reports.plots_units import choose_direction, draw_projections
from recbias.reports.svg import Plot
from reports.plots.svg_reading import read_marks, read_tooltips
from support.plot_rows import MODELS, PROJECTION, SETS, make_projection_units, write_run


def draw(folder: Path, units: dict[str, list[Any]]) -> list[Plot]:
    return list(draw_projections(write_run(folder, [PROJECTION], units=units), "ml-1m", str))


def find_means(plot: Plot) -> list[tuple[float, float]]:
    return [read_marks(plot, f"centre c{series}")[0] for series in range(3)]


def test_each_set_has_its_points_and_its_mean(tmp_path: Path) -> None:
    plots = draw(tmp_path, make_projection_units(MODELS))
    assert [plot.title for plot in plots] == [f"Latent space of {model}" for model in MODELS]
    counts = [len(read_marks(plots[0], f"cloud c{series}")) for series in range(len(SETS))]
    assert counts == [80, 80, 80]
    # means at (1, 0), (-1, 0) and (2, 1): a unit is as long across as upwards
    female, male, romance = find_means(plots[0])
    unit = (female[0] - male[0]) / 2
    assert unit > 20
    assert female[1] == pytest.approx(male[1], abs=0.2)
    assert romance[0] - female[0] == pytest.approx(unit, abs=0.2)
    assert female[1] - romance[1] == pytest.approx(unit, abs=0.2)
    assert "gender=F: 80 points" in read_tooltips(plots[0])


@pytest.mark.parametrize(
    ("groups", "ends"),
    [
        (["genres=Romance", "gender=F", "gender=M"], ("gender=M", "gender=F")),
        (["a=1", "b=1"], None),
        ([], None),
    ],
)
def test_direction_runs_between_two_values_of_one_label(
    groups: list[str], ends: tuple[str, str] | None
) -> None:
    assert choose_direction(groups) == ends
