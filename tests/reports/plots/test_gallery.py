from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from recbias.reports.plots.gallery import gallery
from recbias.reports.views.run_tables import read_run
from support.picture_rows import (
    EXPOSURE,
    MODELS,
    PROJECTION,
    Measure,
    association,
    averages,
    both,
    by_group,
    exposure_units,
    projection_units,
    run_with,
    shares,
)
from support.run_folders import World, make_run


def test_a_run_has_its_three_kinds_of_figures(tmp_path: Path) -> None:
    found = gallery(read_run(make_run(tmp_path, World(metrics=("nDCG", "ARP")))))
    assert [each.name for each in found.figures()] == [
        *("accuracy-popularity", "long-tail", "popularity"),
        *("significance-ndcg-10", "significance-arp-10"),
    ]
    assert found.skipped == ()


def test_what_is_skipped_has_a_reason(tmp_path: Path) -> None:
    world = World(metrics=("nDCG",), lists=False, significance=False, popularity=False)
    found = gallery(read_run(make_run(tmp_path, world)))
    assert found.figures() == []
    scatter, tail = found.skipped
    assert scatter == (
        "Accuracy against popularity bias: the run has no metric of popularity; measure "
        "log_popularity_difference or ARP or popularity_lift or Gini."
    )
    assert tail == "Long tail of recommended items: the run holds no lists."


def test_each_dataset_has_its_figures(tmp_path: Path) -> None:
    world = World(metrics=("nDCG", "ARP"), datasets=("A|1", "A/1"), users=20)
    names = [each.name for each in gallery(read_run(make_run(tmp_path, world))).figures()]
    assert names == [
        *("accuracy-popularity-a-1", "long-tail-a-1", "popularity-a-1"),
        *("accuracy-popularity-a-1-2", "long-tail-a-1-2", "popularity-a-1-2"),
        *("significance-ndcg-10-a-1", "significance-ndcg-10-a-1-2"),
        *("significance-arp-10-a-1", "significance-arp-10-a-1-2"),
    ]


def test_each_family_of_biases_has_its_scatter(tmp_path: Path) -> None:
    found = gallery(run_with(tmp_path, [EXPOSURE, shares()]))
    names = [each.name for each in found.figures()]
    assert "accuracy-stereotypes" in names
    assert "accuracy-prices" not in names  # a share has no better way


def test_what_was_asked_for_and_cannot_be_drawn_has_a_reason(tmp_path: Path) -> None:
    found = gallery(run_with(tmp_path, [EXPOSURE]))
    assert found.skipped[-1] == "Stereotype exposure: REC-ST has no value of a user."
    assert found.pictures() == []


def test_a_run_of_other_things_makes_no_excuses(tmp_path: Path) -> None:
    world = World(models=("a", "b"), metrics=("price_percentage",), lists=False, users=5)
    assert gallery(read_run(make_run(tmp_path, world))).skipped == (
        "Price levels by label: price_percentage@10 has no defined share of a level by label.",
    )


def spoiled(measure: Measure, value: float) -> Measure:
    """Return a measure whose second figure, and third interval, are as given."""
    figures = dict(measure.figures)
    for number, key in enumerate(list(figures)):
        if number == 1:
            figures[key] = (value, 0.1)
        if number == 2:
            figures[key] = (figures[key][0], abs(value))
    return replace(measure, figures=figures)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, -1.7e308, math.nan, 5e-324])
def test_values_that_are_not_finite_are_left_out(tmp_path: Path, value: float) -> None:
    models = (*MODELS, "ALS", "EASE")
    world = World(models=models, metrics=("nDCG", "HR", "ARP"), users=12, items=30)
    units = both(exposure_units(models), projection_units(models, 10))
    units["value"][3], units["value"][-3] = value, value
    measures = [
        shares(),
        association("race", ("white", "black"), 1, 8),
        association("gender", ("F", "M"), 2, 8),
        averages(),
        by_group(("gender=F", "gender=M", "gender=X")),
        EXPOSURE,
        PROJECTION,
    ]
    run = run_with(tmp_path, [spoiled(each, value) for each in measures], world, units)
    figures = run.metrics["metric"].isin(["nDCG", "ARP"]) & (run.metrics["model"] == MODELS[0])
    run.metrics.loc[figures, "value"] = value
    whole = gallery(run)
    assert not [each for each in whole.skipped if "could not be drawn" in each]
    kinds = {each.name.partition("-")[0] for each in whole.pictures()}
    assert kinds == {"exposure", "projection", "groups", "levels", "ranking", "association"}
    for figure in whole.figures():
        places = re.findall(r'\b(?:x|y|x1|y1|cx|cy|d|points)="([^"]*)"', figure.document())
        assert not [each for each in places if "nan" in each or "inf" in each], figure.name
    told = [each.name for each in whole.figures() if "not drawn" in each.caption]
    if math.isnan(value) or abs(value) < 1:
        assert not told
    else:
        expected = ["accuracy-popularity", "metric-agreement", "groups-", "levels-", "ranking-"]
        for stem in [*expected, "association-", "exposure-", "projection-"]:
            assert any(name.startswith(stem) for name in told), stem


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_run_of_no_finite_value_has_no_such_picture(tmp_path: Path, value: float) -> None:
    figures = {("location=a", ""): (value, 0.0), ("location=b", ""): (value, 0.0)}
    found = gallery(run_with(tmp_path, [replace(averages(), figures=figures)]))
    assert found.pictures() == []
    assert "has no defined mean of a label" in found.skipped[-1]
