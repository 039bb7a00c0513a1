from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots_prompts import draw_associations
from recbias.reports.svg import Plot
from reports.plots.svg_reading import read_marks, read_texts, read_tooltips
from support.plot_rows import FOODS, Measure, make_association, write_run

RACE, GENDER = (
    make_association("race", ("white", "black"), 1),
    make_association("gender", ("F", "M"), 2),
)


def draw(folder: Path, *measures: Measure) -> list[Plot]:
    return list(draw_associations(write_run(folder, measures), "ml-1m", str))


def make_constant(measure: Measure, value: float) -> Measure:
    return replace(measure, figures=dict.fromkeys(measure.figures, (value, 0.08)))


def test_each_attribute_value_is_placed_by_both_labels(tmp_path: Path) -> None:
    points = read_marks(draw(tmp_path, RACE, GENDER)[0])
    race = [RACE.figures["race=white", f"categories={food}"][0] for food in FOODS]
    gender = [GENDER.figures["gender=F", f"categories={food}"][0] for food in FOODS]
    assert len(points) == len(FOODS)
    xs = [points[n][0] for n in np.argsort(race)]
    ys = [points[n][1] for n in np.argsort(gender)]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)


def test_open_points_have_intervals_that_include_zero(tmp_path: Path) -> None:
    zero = make_constant(GENDER, 0.0)
    near = draw(tmp_path / "near", make_constant(RACE, 0.01), zero)[0]
    far = draw(tmp_path / "far", make_constant(RACE, 0.5), zero)[0]
    assert "Open points" in near.caption
    assert len(read_marks(near, "open")) == len(FOODS)
    assert "Open points" not in far.caption
    assert read_marks(far, "open") == []


def test_ratios_are_neutral_at_one(tmp_path: Path) -> None:
    ratios = [
        replace(
            measure,
            figures={key: (1 + value, half) for key, (value, half) in measure.figures.items()},
            parameters={**measure.parameters, "form": "ratio"},
        )
        for measure in (RACE, GENDER)
    ]
    assert "at 1 there is no difference" in draw(tmp_path, *ratios)[0].caption


def test_attribute_value_without_both_associations_is_omitted(tmp_path: Path) -> None:
    figures = {**RACE.figures, ("race=white", "categories=Bars"): (math.nan, 0.0)}
    plot = draw(tmp_path / "some", replace(RACE, figures=figures), GENDER)[0]
    assert len(read_marks(plot)) == len(FOODS) - 1
    assert not [text for text in read_tooltips(plot) if text.startswith("categories=Bars:")]
    other = replace(RACE, figures={("race=white", "categories=Else"): (0.1, 0.1)})
    with pytest.raises(MissingEvidence, match="no attribute value has both"):
        draw(tmp_path / "none", other, GENDER)


def test_axes_with_equal_label_values_carry_their_label(tmp_path: Path) -> None:
    # "with my [first] and her [second]": both labels have the values female and male
    first = make_association("first_gender", ("female", "male"), 1)
    second = make_association("second_gender", ("female", "male"), 2)
    texts = read_texts(draw(tmp_path, first, second)[0])
    assert {"first_gender female →", "← first_gender male"} <= set(texts)
    assert {"↑ second_gender female", "↓ second_gender male"} <= set(texts)
