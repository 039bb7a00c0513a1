from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.papers.stereotypes import box_of, stereotypes
from support.picture_rows import EXPOSURE, MODELS, exposure_units, places, run_with, texts, words
from support.run_folders import NINETEEN, World


def test_a_box_by_hand() -> None:
    # 1 to 9 and 30: quartiles at 3.25, 5.5 and 7.75 (linear), the box is 4.5 long, whiskers reach
    # from 3.25 - 6.75 to 7.75 + 6.75 = 14.5, that is 1 to 9; the mean is 75 / 10
    box = box_of(np.array([*range(1, 10), 30.0]))
    assert (box.low, box.quarter, box.median, box.three, box.high) == (1, 3.25, 5.5, 7.75, 9)
    assert (box.mean, box.n) == (7.5, 10)


def test_models_stand_by_their_mean(tmp_path: Path) -> None:
    units = exposure_units(tuple(reversed(MODELS)))
    run = run_with(tmp_path, [EXPOSURE], units=units)
    (picture,) = stereotypes(run, "ml-1m", str)
    # BERT is the first of the reversed models: a tenth at most, then MostPop and Random
    labels = [each for each in texts(picture) if each in MODELS]
    assert labels == ["BERT", "MostPop", "Random"]
    at = places(picture)
    means = [at[f"mean-{row}"][0] for row in range(3)]
    assert means == sorted(means)
    assert "n 60" in texts(picture)
    assert words(picture)[0].startswith("BERT: mean 0.049, median 0.049")
    assert "Lowest mean: BERT (0.049); highest: Random (0.147)." in picture.caption


@pytest.mark.parametrize("models", [("one",), (*NINETEEN, "LMRec", "WOK")])
def test_any_number_of_models_is_drawn(tmp_path: Path, models: tuple[str, ...]) -> None:
    world = World(models=models, metrics=("nDCG",), users=5, items=20)
    run = run_with(tmp_path, [EXPOSURE], world, exposure_units(models, 10))
    (picture,) = stereotypes(run, "ml-1m", str)
    heights = sorted(spot[0][1] for name, spot in places(picture).items() if "mean" in name)
    assert len(heights) == len(models)
    assert all(b - a > 20 for a, b in itertools.pairwise(heights))


def test_users_who_are_all_alike_have_a_box(tmp_path: Path) -> None:
    units = exposure_units(MODELS, 5)
    units["value"] = [0.0] * len(units["value"])
    (picture,) = stereotypes(run_with(tmp_path, [EXPOSURE], units=units), "ml-1m", str)
    assert "mean 0.000" in words(picture)[0]


def test_kinds_have_a_picture_each(tmp_path: Path) -> None:
    units = exposure_units(MODELS, 6)
    units["target"] = ["kind=race" if each in {"u1", "u2"} else "" for each in units["unit_id"]]
    found = list(stereotypes(run_with(tmp_path, [EXPOSURE], units=units), "ml-1m", str))
    assert [each.title for each in found] == [
        *("REC-ST of each user's list", "REC-ST of each user's list, kind=race"),
    ]


def test_without_values_of_users_there_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(MissingEvidence, match="no value of a user"):
        list(stereotypes(run_with(tmp_path, [EXPOSURE]), "ml-1m", str))


def test_a_run_without_the_metric_says_nothing(tmp_path: Path) -> None:
    assert list(stereotypes(run_with(tmp_path, []), "ml-1m", str)) == []
