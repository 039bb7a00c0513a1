from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.papers.projection import MOST_POINTS, direction, projection
from support.picture_rows import (
    MODELS,
    PROJECTION,
    SETS,
    places,
    projection_units,
    run_with,
    texts,
    words,
)
from support.run_folders import HOSTILE


def test_each_set_has_its_points_and_its_mean(tmp_path: Path) -> None:
    run = run_with(tmp_path, [PROJECTION], units=projection_units(MODELS))
    pictures = list(projection(run, "ml-1m", str))
    assert [each.title for each in pictures] == [f"Latent space of {each}" for each in MODELS]
    at = places(pictures[0])
    assert [len(at[f"set-{place}"]) for place in range(len(SETS))] == [80, 80, 80]
    # means at (1, 0), (-1, 0) and (2, 1): one unit is as long across as upwards
    (f,), (m,), (romance,) = (at[f"centre-{place}"] for place in range(3))
    unit = (f[0] - m[0]) / 2
    assert unit > 20
    assert f[1] == pytest.approx(m[1])
    assert romance[0] - f[0] == pytest.approx(unit, rel=1e-3)
    assert f[1] - romance[1] == pytest.approx(unit, rel=1e-3)
    assert words(pictures[0])[0] == "gender=F: 80 points"


def test_the_arrow_runs_between_the_sets_of_one_label(tmp_path: Path) -> None:
    run = run_with(tmp_path, [PROJECTION], units=projection_units(MODELS[:1]))
    (picture,) = projection(run, "ml-1m", str)
    assert 'id="' + picture.name + '.direction"' in picture.document()
    assert "from the mean of gender=M to that of gender=F, 2." in picture.caption


@pytest.mark.parametrize(
    ("groups", "ends"),
    [
        (["genres=Romance", "gender=F", "gender=M"], ("gender=M", "gender=F")),
        (["a=1", "b=1"], None),
        ([], None),
    ],
)
def test_the_direction(groups: list[str], ends: tuple[str, str] | None) -> None:
    assert direction(groups) == ends


def test_very_many_points_are_thinned(tmp_path: Path) -> None:
    units = projection_units(MODELS[:1], n=2000)
    (picture,) = projection(run_with(tmp_path, [PROJECTION], units=units), "ml-1m", str)
    drawn = sum(len(spots) for name, spots in places(picture).items() if name.startswith("set-"))
    assert 1000 < drawn <= MOST_POINTS
    assert "Of 6,000 points" in picture.caption


def test_hostile_sets_are_letters(tmp_path: Path) -> None:
    sets = {f"x={each}": (float(at), 0.0) for at, each in enumerate(HOSTILE)}
    units = projection_units(MODELS[:1], 5, sets)
    (picture,) = projection(run_with(tmp_path, [PROJECTION], units=units), "ml-1m", str)
    assert "<script" not in picture.inline()
    assert sum(each.startswith("x=") for each in texts(picture)) == 2 * len(HOSTILE)


def test_points_need_both_components(tmp_path: Path) -> None:
    units = projection_units(MODELS[:1], 5)
    units["target"] = ["PC1"] * len(units["target"])
    with pytest.raises(MissingEvidence, match="both components"):
        list(projection(run_with(tmp_path, [PROJECTION], units=units), "ml-1m", str))
