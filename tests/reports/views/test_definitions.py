from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.measurements.scores import Direction
from recbias.reports.views.definitions import (
    accuracy_metric,
    best,
    definitions,
    popularity_metric,
    title_of,
)
from recbias.reports.views.run_tables import read_run
from support.run_folders import RunSpec, make_run

NAN = math.nan


@pytest.mark.parametrize(
    ("values", "direction", "wins"),
    [
        ([0.1, 0.3, 0.2], "higher", [1]),
        ([0.1, 0.3, 0.2], "lower", [0]),
        ([-0.5, 0.4, 0.6], "zero", [1]),
        ([-0.4, 0.4], "zero", [0, 1]),
        ([0.3, 0.3, NAN], "higher", [0, 1]),
        ([NAN, NAN], "lower", []),
        ([0.1, 0.3], "none", []),
        ([], "higher", []),
    ],
)
def test_best_goes_by_the_direction_and_ties_all_win(
    values: list[float], direction: Direction, wins: list[int]
) -> None:
    assert [place for place, win in enumerate(best(values, direction)) if win] == wins


@given(st.lists(st.floats(allow_infinity=False), min_size=1), st.sampled_from(["higher", "lower"]))
def test_nan_never_wins(values: list[float], direction: Direction) -> None:
    wins = [value for value, win in zip(values, best(values, direction), strict=True) if win]
    assert not any(map(math.isnan, wins))
    assert bool(wins) == any(not math.isnan(each) for each in values)


@pytest.mark.parametrize(
    ("metric", "k", "title"),
    [("nDCG", 10.0, "nDCG@10"), ("R-RIPA", NAN, "R-RIPA"), ("EAA", None, "EAA")],
)
def test_titles_have_the_cutoff_behind_the_at_sign(
    metric: str, k: float | None, title: str
) -> None:
    assert title_of(metric, k) == title


def test_definitions_stand_in_the_order_of_the_figures(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=("HR", "log_popularity_difference"))))
    known = definitions(run)
    assert list(known) == ["HR@10", "log_popularity_difference@10"]
    assert [each.direction for each in known.values()] == ["higher", "zero"]
    assert known["HR@10"].parameters == {"k": 10}


def test_a_metric_that_the_manifest_does_not_know_has_no_direction(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    run.metrics["metric"] = "APLT(head=0.8)"
    known = definitions(run)
    assert list(known) == ["APLT(head=0.8)@10"]
    assert known["APLT(head=0.8)@10"].direction == "none"
    assert known["APLT(head=0.8)@10"].name == "APLT"


@pytest.mark.parametrize(
    ("metrics", "accuracy", "popularity"),
    [
        (("HR", "nDCG", "Gini", "ARP"), "nDCG@10", "ARP@10"),
        (("HR", "MRR", "ARP", "log_popularity_difference"), "MRR@10",
         "log_popularity_difference@10"),
        (("Gini",), None, "Gini@10"),
        (("Novelty",), None, None),
    ],
)  # fmt: skip
def test_the_metrics_to_show_first_are_chosen_by_name(
    tmp_path: Path, metrics: tuple[str, ...], accuracy: str | None, popularity: str | None
) -> None:
    known = definitions(read_run(make_run(tmp_path, RunSpec(metrics=metrics)))).values()
    found = accuracy_metric(known), popularity_metric(known)
    assert [each.title if each else None for each in found] == [accuracy, popularity]
