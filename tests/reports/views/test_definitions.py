from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.measures import Direction
from recbias.reports.run import read_run
from recbias.reports.views import (
    collect_definitions,
    flag_best,
    select_accuracy_metric,
    select_popularity_metric,
)
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
def test_the_best_values_depend_on_the_direction_and_include_ties(
    values: list[float], direction: Direction, wins: list[int]
) -> None:
    assert [position for position, win in enumerate(flag_best(values, direction)) if win] == wins


@given(st.lists(st.floats(allow_infinity=False), min_size=1), st.sampled_from(["higher", "lower"]))
def test_nan_is_never_the_best(values: list[float], direction: Direction) -> None:
    wins = [value for value, win in zip(values, flag_best(values, direction), strict=True) if win]
    assert not any(map(math.isnan, wins))
    assert bool(wins) == any(not math.isnan(value) for value in values)


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
def test_the_main_metrics_are_selected_by_name(
    tmp_path: Path, metrics: tuple[str, ...], accuracy: str | None, popularity: str | None
) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=metrics)))
    definitions = collect_definitions(run).values()
    selected = select_accuracy_metric(definitions), select_popularity_metric(definitions)
    assert [metric.title if metric else None for metric in selected] == [accuracy, popularity]
