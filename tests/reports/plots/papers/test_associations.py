from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.drawing.svg import width_of
from recbias.reports.plots.papers.associations import associations
from support.picture_rows import (
    FOODS,
    MODELS,
    Measure,
    association,
    places,
    run_with,
    texts,
    words,
)

RACE, GENDER = association("race", ("white", "black"), 1), association("gender", ("F", "M"), 2)


def drawn(folder: Path, *measures: Measure) -> list[Picture]:
    return list(associations(run_with(folder, measures), "ml-1m", str))


def test_each_attribute_value_stands_by_both_labels(tmp_path: Path) -> None:
    picture = drawn(tmp_path, RACE, GENDER)[0]
    at = places(picture)
    assert len(at) == len(FOODS)
    race = [RACE.figures["race=white", f"categories={each}"][0] for each in FOODS]
    gender = [GENDER.figures["gender=F", f"categories={each}"][0] for each in FOODS]
    spots = [at[f"point-{place}"][0] for place in range(len(FOODS))]
    by_x = sorted(range(len(FOODS)), key=lambda each: spots[each][0])
    by_y = sorted(range(len(FOODS)), key=lambda each: -spots[each][1])
    assert by_x == sorted(range(len(FOODS)), key=lambda each: race[each])
    assert by_y == sorted(range(len(FOODS)), key=lambda each: gender[each])


def test_forty_labels_are_there_and_none_lies_on_another(tmp_path: Path) -> None:
    from xml.etree import ElementTree as ET

    picture = drawn(tmp_path, RACE, GENDER)[0]
    boxes = []
    for group in ET.fromstring(picture.document()).iter("{http://www.w3.org/2000/svg}g"):
        if ".label-" in group.get("id", ""):
            (text,) = group.iter("{http://www.w3.org/2000/svg}text")
            x, y = float(text.get("x", "")), float(text.get("y", ""))
            boxes.append((x, y - 10, x + width_of(text.text or ""), y + 3))
    assert len(boxes) == len(FOODS) == 40
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    assert "Coffee & Tea" in texts(picture)


def test_the_ends_of_the_axes_are_named(tmp_path: Path) -> None:
    said = texts(drawn(tmp_path, RACE, GENDER)[0])
    assert {"white →", "← black", "↑ F", "↓ M"} <= set(said)


def test_there_is_a_picture_for_each_model(tmp_path: Path) -> None:
    assert [each.title for each in drawn(tmp_path, RACE, GENDER)] == [
        f"Categories by race and gender: {model}" for model in MODELS
    ]


def test_open_points_are_those_that_say_nothing(tmp_path: Path) -> None:
    near = replace(RACE, figures=dict.fromkeys(RACE.figures, (0.01, 0.08)))
    far = replace(RACE, figures=dict.fromkeys(RACE.figures, (0.5, 0.08)))
    zero = replace(GENDER, figures=dict.fromkeys(GENDER.figures, (0.0, 0.08)))
    assert "Open points" in drawn(tmp_path / "near", near, zero)[0].caption
    assert "Open points" not in drawn(tmp_path / "far", far, zero)[0].caption


def test_one_label_value_may_be_reported_alone(tmp_path: Path) -> None:
    white = {key: each for key, each in RACE.figures.items() if key[0] == "race=white"}
    alone = replace(RACE, figures=white, parameters={**RACE.parameters, "positive": "white"})
    said = texts(drawn(tmp_path, alone, GENDER)[0])
    assert {"white →", "← less white"} <= set(said)


def test_ratios_are_neutral_at_one(tmp_path: Path) -> None:
    ratios = [
        replace(
            each,
            figures={key: (1 + value, half) for key, (value, half) in each.figures.items()},
            parameters={**each.parameters, "form": "ratio"},
        )
        for each in (RACE, GENDER)
    ]
    assert "at 1 there is no difference" in drawn(tmp_path, *ratios)[0].caption


@pytest.mark.parametrize(
    "measures",
    [
        (),
        (RACE,),
        (RACE, replace(GENDER, parameters={"attribute": "price", "label": "gender"})),
        (RACE, replace(GENDER, parameters={**GENDER.parameters, "form": "ratio"})),
    ],
)
def test_it_takes_two_labels_of_one_attribute(
    tmp_path: Path, measures: tuple[Measure, ...]
) -> None:
    assert drawn(tmp_path, *measures) == []


def test_a_value_without_both_figures_is_left_out(tmp_path: Path) -> None:
    lost = {**RACE.figures, ("race=white", "categories=Bars"): (float("nan"), 0.0)}
    picture = drawn(tmp_path / "some", replace(RACE, figures=lost), GENDER)[0]
    assert len(places(picture)) == len(FOODS) - 1
    assert not [each for each in words(picture) if each.startswith("categories=Bars:")]
    elsewhere = {("race=white", "categories=Else"): (0.1, 0.1)}
    with pytest.raises(MissingEvidence, match="no attribute value has both"):
        drawn(tmp_path / "none", replace(RACE, figures=elsewhere), GENDER)


def test_labels_on_one_spot_still_do_not_collide(tmp_path: Path) -> None:
    flat = [
        replace(each, figures=dict.fromkeys(each.figures, (0.0, 0.1))) for each in (RACE, GENDER)
    ]
    picture = drawn(tmp_path, *flat)[0]
    assert len(places(picture)) == len(FOODS)
    assert "found no place" not in picture.caption


def test_the_two_places_of_a_sentence_share_a_picture(tmp_path: Path) -> None:
    # "with my [first] and her [second]": both ends are called alike, and so carry their label
    first = association("first_gender", ("female", "male"), 1)
    second = association("second_gender", ("female", "male"), 2)
    said = texts(drawn(tmp_path, first, second)[0])
    assert {"first_gender female →", "← first_gender male"} <= set(said)
    assert {"↑ second_gender female", "↓ second_gender male"} <= set(said)


def test_labels_that_no_query_has_both_of_share_no_picture(tmp_path: Path) -> None:
    first = association("first_gender", ("female", "male"), 1)
    run = run_with(tmp_path, [RACE, GENDER, first])
    labels = {"race": ["gender"], "gender": ["race"], "first_gender": []}
    asked = [{"dataset": "ml-1m", "asked": 9, "unit": "prompt", "labels": labels}]
    told = replace(run, manifest={**run.manifest, "queries": asked})
    titles = {each.title.partition(":")[0] for each in associations(told, "ml-1m", str)}
    assert titles == {"Categories by race and gender"}
