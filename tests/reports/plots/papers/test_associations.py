from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots_prompts import draw_associations
from recbias.reports.svg import Plot, estimate_width
from reports.plots.svg_reading import find_elements, read_marks, read_texts, read_tooltips
from support.plot_rows import FOODS, MODELS, Measure, make_association, write_run

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


def test_forty_labels_do_not_overlap(tmp_path: Path) -> None:
    boxes = []
    for text in find_elements(draw(tmp_path, RACE, GENDER)[0], "text", "halo"):
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        boxes.append((x, y - 10, x + estimate_width(text.text or ""), y + 3))
    assert len(boxes) == len(FOODS) == 40
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] + 0.1 or b[2] <= a[0] + 0.1 or a[3] <= b[1] or b[3] <= a[1]


def test_ends_of_the_axes_are_named(tmp_path: Path) -> None:
    texts = read_texts(draw(tmp_path, RACE, GENDER)[0])
    assert {"white →", "← black", "↑ F", "↓ M", "Coffee & Tea"} <= set(texts)


def test_each_model_has_a_plot(tmp_path: Path) -> None:
    assert [plot.title for plot in draw(tmp_path, RACE, GENDER)] == [
        f"Categories by race and gender: {model}" for model in MODELS
    ]


def test_open_points_have_intervals_that_include_zero(tmp_path: Path) -> None:
    zero = make_constant(GENDER, 0.0)
    near = draw(tmp_path / "near", make_constant(RACE, 0.01), zero)[0]
    far = draw(tmp_path / "far", make_constant(RACE, 0.5), zero)[0]
    assert "Open points" in near.caption
    assert len(read_marks(near, "open")) == len(FOODS)
    assert "Open points" not in far.caption
    assert read_marks(far, "open") == []


def test_single_label_value_is_compared_with_less_of_it(tmp_path: Path) -> None:
    white = {key: value for key, value in RACE.figures.items() if key[0] == "race=white"}
    single = replace(RACE, figures=white, parameters={**RACE.parameters, "positive": "white"})
    assert {"white →", "← less white"} <= set(read_texts(draw(tmp_path, single, GENDER)[0]))


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


@pytest.mark.parametrize(
    "measures",
    [
        (),
        (RACE,),
        (RACE, replace(GENDER, parameters={"attribute": "price", "label": "gender"})),
        (RACE, replace(GENDER, parameters={**GENDER.parameters, "form": "ratio"})),
    ],
)
def test_plot_requires_two_labels_of_one_attribute(
    tmp_path: Path, measures: tuple[Measure, ...]
) -> None:
    assert draw(tmp_path, *measures) == []


def test_attribute_value_without_both_associations_is_omitted(tmp_path: Path) -> None:
    figures = {**RACE.figures, ("race=white", "categories=Bars"): (math.nan, 0.0)}
    plot = draw(tmp_path / "some", replace(RACE, figures=figures), GENDER)[0]
    assert len(read_marks(plot)) == len(FOODS) - 1
    assert not [text for text in read_tooltips(plot) if text.startswith("categories=Bars:")]
    other = replace(RACE, figures={("race=white", "categories=Else"): (0.1, 0.1)})
    with pytest.raises(MissingEvidence, match="no attribute value has both"):
        draw(tmp_path / "none", other, GENDER)


def test_labels_of_equal_points_all_fit(tmp_path: Path) -> None:
    plot = draw(tmp_path, make_constant(RACE, 0.0), make_constant(GENDER, 0.0))[0]
    assert len(read_marks(plot)) == len(FOODS)
    assert "do not fit" not in plot.caption


def test_axes_with_equal_label_values_carry_their_label(tmp_path: Path) -> None:
    # "with my [first] and her [second]": both labels have the values female and male
    first = make_association("first_gender", ("female", "male"), 1)
    second = make_association("second_gender", ("female", "male"), 2)
    texts = read_texts(draw(tmp_path, first, second)[0])
    assert {"first_gender female →", "← first_gender male"} <= set(texts)
    assert {"↑ second_gender female", "↓ second_gender male"} <= set(texts)


def test_labels_that_never_occur_together_share_no_plot(tmp_path: Path) -> None:
    run = write_run(
        tmp_path, [RACE, GENDER, make_association("first_gender", ("female", "male"), 1)]
    )
    labels = {"race": ["gender"], "gender": ["race"], "first_gender": []}
    queries = [{"dataset": "ml-1m", "asked": 9, "unit": "prompt", "labels": labels}]
    run = replace(run, manifest={**run.manifest, "queries": queries})
    titles = {plot.title.partition(":")[0] for plot in draw_associations(run, "ml-1m", str)}
    assert titles == {"Categories by race and gender"}
