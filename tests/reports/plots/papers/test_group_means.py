from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.papers.group_means import gaps
from support.picture_rows import MODELS, by_group, places, run_with, texts, words

PAIR = ("gender=F", "gender=M")


def test_each_model_has_a_mark_for_each_group(tmp_path: Path) -> None:
    (picture,) = gaps(run_with(tmp_path, [by_group(PAIR)]), "ml-1m", str)
    at = places(picture)
    # 0.20 and 0.23 for the first model, 0.02 more for each other
    for row in range(len(MODELS)):
        assert at[f"row-{row}-0"][0][0] < at[f"row-{row}-1"][0][0]
    first = [at[f"row-{row}-0"][0][0] for row in range(len(MODELS))]
    assert first == sorted(first)
    assert "MostPop, gender=M: 0.250 (95% interval 0.230 to 0.270), n 40" in words(picture)


def test_the_caption_has_the_widest_gap_and_the_counts(tmp_path: Path) -> None:
    (picture,) = gaps(run_with(tmp_path, [by_group(PAIR)]), "ml-1m", str)
    assert "The widest gap is" in picture.caption
    assert "Queries: gender=F 40 and gender=M 40." in picture.caption


def test_many_groups_have_a_panel_a_model(tmp_path: Path) -> None:
    groups = tuple(f"age={at}&gender=F" for at in range(12))
    (picture,) = gaps(run_with(tmp_path, [by_group(groups)]), "ml-1m", str)
    said = texts(picture)
    assert [each for each in said if each in MODELS] == list(MODELS)
    assert sum(each in groups for each in said) == len(groups) * len(MODELS)


def test_parts_have_a_picture_each(tmp_path: Path) -> None:
    measure = by_group(PAIR)
    parts = {(group, "kind=race"): each for (group, _), each in measure.figures.items()}
    both = replace(measure, figures={**measure.figures, **parts})
    found = list(gaps(run_with(tmp_path, [both]), "ml-1m", str))
    assert len(found) == 2
    assert "kind=race" in found[1].title


def test_an_undefined_group_is_left_out(tmp_path: Path) -> None:
    measure = by_group(PAIR)
    figures = {**measure.figures, ("gender=F", ""): (float("nan"), 0.0)}
    (picture,) = gaps(run_with(tmp_path / "a", [replace(measure, figures=figures)]), "ml-1m", str)
    assert "row-0-1" not in places(picture)
    assert "widest" not in picture.caption
    nothing = dict.fromkeys(measure.figures, (float("nan"), 0.0))
    with pytest.raises(MissingEvidence, match="in no group"):
        list(gaps(run_with(tmp_path / "b", [replace(measure, figures=nothing)]), "ml-1m", str))
