from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers.prices import neutral_of, prices
from support.picture_rows import LEVELS, MODELS, Measure, places, run_with, shares, texts, words
from support.run_folders import HOSTILE, NINETEEN, World

NAN = float("nan")


def drawn(folder: Path, measure: Measure, world: World | None = None) -> Picture:
    (found,) = prices(run_with(folder, [measure], world), "ml-1m", str)
    return found


def test_each_level_of_each_model_has_a_mark_for_each_label(tmp_path: Path) -> None:
    picture = drawn(tmp_path, shares())
    at = places(picture)
    assert sum(name.startswith("row-") for name in at) == len(MODELS) * len(LEVELS) * 2
    # black is 0.7, 0.6, 0.5, 0.4 from $ to $$$$: further and further left, white the other way
    black = [at[f"row-{row}-0"][0][0] for row in range(4)]
    white = [at[f"row-{row}-1"][0][0] for row in range(4)]
    assert black == sorted(black, reverse=True)
    assert white == sorted(white)
    assert black[2] == pytest.approx(white[2])  # both 0.5


def test_dollars_are_dollars(tmp_path: Path) -> None:
    picture = drawn(tmp_path, shares())
    assert [each for each in texts(picture) if set(each) == {"$"}] == list(LEVELS) * len(MODELS)
    said = "Random, price=$$, race=black: 0.600 (95% interval 0.560 to 0.640)"
    assert said in words(picture)


@pytest.mark.parametrize(("values", "neutral"), [(("a", "b"), "0.5"), (tuple("abcd"), "0.25")])
def test_the_neutral_line_is_one_over_the_labels(
    tmp_path: Path, values: tuple[str, ...], neutral: str
) -> None:
    picture = drawn(tmp_path, shares(values=values))
    assert f"equal shares, {neutral}" in texts(picture)
    assert f"each share is {neutral}." in picture.caption


def test_crossed_labels_are_written_out(tmp_path: Path) -> None:
    figures = {
        (f"race={race}&gender={gender}", "price=$"): (0.25, 0.01)
        for race in ("b", "w")
        for gender in ("f", "m")
    }
    picture = drawn(tmp_path, Measure("price_percentage", figures, {"label": "race&gender"}))
    assert picture.title == "Price levels by race&gender"
    assert "race=w&gender=f" in texts(picture)


def test_undefined_shares_are_left_out(tmp_path: Path) -> None:
    measure = shares()
    figures = {**measure.figures, ("race=black", "price=$"): (NAN, 0.0)}
    at = places(drawn(tmp_path / "some", replace(measure, figures=figures)))
    assert sum(name.startswith("row-") for name in at) == len(MODELS) * 7
    none = dict.fromkeys(measure.figures, (NAN, 0.0))
    with pytest.raises(MissingEvidence, match="no defined share"):
        drawn(tmp_path / "none", replace(measure, figures=none))


def test_hostile_labels_are_letters(tmp_path: Path) -> None:
    world = World(models=HOSTILE, metrics=("nDCG",), users=5, items=20)
    picture = drawn(tmp_path, shares("x", HOSTILE[:3]), world)
    assert "<script" not in picture.inline()
    assert "<script>alert(1)</script>" in texts(picture)


@pytest.mark.parametrize("models", [("one",), (*NINETEEN, "LMRec", "WOK")])
def test_any_number_of_models_is_drawn(tmp_path: Path, models: tuple[str, ...]) -> None:
    world = World(models=models, metrics=("nDCG",), users=5, items=20)
    picture = drawn(tmp_path, shares(), world)
    assert set(models) <= set(texts(picture))
    marks = [spot[0] for name, spot in places(picture).items() if name.startswith("row-")]
    assert len(set(marks)) == len(marks)


def test_over_several_datasets_there_are_no_intervals(tmp_path: Path) -> None:
    world = World(models=MODELS, metrics=("nDCG",), users=5, items=20, datasets=("a", "b"))
    run = run_with(tmp_path, [shares()], world)
    (picture,) = prices(run, "all", str)
    assert "intervals" not in picture.caption
    (picture,) = prices(run, "a", str)
    assert picture.caption.endswith("Lines are 95% intervals.")


@pytest.mark.parametrize(
    ("labels", "within", "neutral"),
    [
        (["race=a", "race=b", "race=c"], "", 1 / 3),
        (["race=a&sex=F", "race=b&sex=F", "race=a&sex=M", "race=b&sex=M"], "", 0.25),
        (["race=a&sex=F", "race=b&sex=F", "race=a&sex=M", "race=b&sex=M"], "sex", 0.5),
        (["race=a&sex=F", "race=b&sex=F", "race=a&sex=M"], "sex", NAN),  # 2 of F and 1 of M
        (["race=a"], "", NAN),
    ],
)
def test_what_is_neutral(labels: list[str], within: str, neutral: float) -> None:
    assert neutral_of(labels, within) == pytest.approx(neutral, nan_ok=True)
