from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.papers.attribute_ranking import LONGEST, ranking
from recbias.reports.plots.papers.plot_rows import MOST_MODELS
from support.picture_rows import MODELS, PLACES, Measure, averages, places, run_with, texts
from support.run_folders import NINETEEN, World


def test_the_highest_mean_stands_first_and_furthest_right(tmp_path: Path) -> None:
    pictures = list(ranking(run_with(tmp_path, [averages()]), "ml-1m", str))
    assert [each.title for each in pictures] == [
        f"Average price by location: {model}" for model in MODELS
    ]
    labels = [each for each in texts(pictures[0]) if each in PLACES]
    assert labels == list(reversed(PLACES))
    at = places(pictures[0])
    xs = [at[f"row-{row}-0"][0][0] for row in range(len(PLACES))]
    assert xs == sorted(xs, reverse=True)


def test_the_caption_names_both_ends(tmp_path: Path) -> None:
    picture = next(ranking(run_with(tmp_path, [averages()]), "ml-1m", str))
    assert "Highest: courthouse, 2.200 (95% interval 2.140 to 2.260)" in picture.caption
    assert "lowest: office, 1.500 (95% interval 1.440 to 1.560)." in picture.caption


def test_of_very_many_labels_both_ends_are_drawn(tmp_path: Path) -> None:
    names = [f"place {at:03d}" for at in range(150)]
    picture = next(ranking(run_with(tmp_path, [averages(names)]), "ml-1m", str))
    labels = [each for each in texts(picture) if each in names]
    assert len(labels) == LONGEST
    assert labels[0] == "place 149"
    assert labels[-1] == "place 000"
    assert "The 30 highest" in texts(picture)


def test_of_very_many_models_some_are_drawn_and_the_rest_named(tmp_path: Path) -> None:
    world = World(models=(*NINETEEN, "LMRec", "WOK"), metrics=("nDCG",), users=5, items=20)
    pictures = list(ranking(run_with(tmp_path, [averages()], world), "ml-1m", str))
    assert len(pictures) == MOST_MODELS
    assert "The table has" in pictures[0].caption
    assert "11 more too." in pictures[0].caption  # 21 models, 6 drawn, 4 named


def test_one_label_is_a_ranking_too(tmp_path: Path) -> None:
    picture = next(ranking(run_with(tmp_path, [averages(["office"])]), "ml-1m", str))
    assert "Highest" not in picture.caption


def test_the_line_is_where_no_word_is_told(tmp_path: Path) -> None:
    figures = {("location=bank", ""): (2.0, 0.1), ("location=farm", ""): (1.5, 0.1)}
    with_line = Measure(
        "mean_attribute", {**figures, ("neutral", ""): (1.9, 0.1)}, {"attribute": "price"}
    )
    without = Measure("mean_attribute", figures, {"attribute": "price"})
    picture = next(ranking(run_with(tmp_path / "a", [with_line]), "ml-1m", str))
    assert picture.title.startswith("Average price by location: ")
    assert "without any word" in texts(picture)
    assert "mean over the labels" not in texts(picture)
    assert [each for each in texts(picture) if each in {"bank", "farm", "neutral"}] == [
        "bank",
        "farm",
    ]
    picture = next(ranking(run_with(tmp_path / "b", [without]), "ml-1m", str))
    assert "mean over the labels" in texts(picture)


def test_nothing_defined_is_a_reason(tmp_path: Path) -> None:
    nothing = Measure("mean_attribute", {("location=a", ""): (float("nan"), 0.0)})
    with pytest.raises(MissingEvidence, match="no defined mean"):
        list(ranking(run_with(tmp_path, [nothing]), "ml-1m", str))
