from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.measures import Direction
from recbias.reports.render import Content, render_html, render_markdown
from recbias.reports.run import read_run
from recbias.reports.views import (
    collect_definitions,
    flag_best,
    group_definitions,
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


def test_definitions_follow_the_order_of_the_metrics(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=("HR", "log_popularity_difference"))))
    definitions = collect_definitions(run)
    assert list(definitions) == ["HR@10", "log_popularity_difference@10"]
    assert [definition.direction for definition in definitions.values()] == ["higher", "zero"]
    assert definitions["HR@10"].parameters == {"k": 10}


def test_a_metric_whose_grouping_is_null_has_no_groups_in_its_heading(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(metrics=("HR",))))
    run.manifest["metrics"][0]["parameters"] = {"by": None, "scale": "log"}
    (definition,) = collect_definitions(run).values()
    assert definition.parameters == {"scale": "log"}
    assert "None" not in definition.heading + definition.groups_heading


def test_a_metric_that_the_manifest_does_not_define_has_no_direction(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path))
    run.metrics["metric"] = "APLT(head=0.8)"
    definitions = collect_definitions(run)
    assert list(definitions) == ["APLT(head=0.8)@10"]
    assert definitions["APLT(head=0.8)@10"].direction == "none"
    assert definitions["APLT(head=0.8)@10"].name == "APLT"


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


def test_metrics_that_differ_in_settings_only_are_defined_once(tmp_path: Path) -> None:
    metrics = ("nDCG", "nDCG(by=gender, gap=difference)", "HR")
    folder = make_run(tmp_path, RunSpec(metrics=metrics, users=20))
    groups = group_definitions(read_run(folder))
    assert [[metric.heading for metric in group] for group in groups] == [
        ["nDCG@10", "nDCG@10, gap by gender"],
        ["HR@10"],
    ]
    page, text = render_html(Content(read_run(folder))), render_markdown(Content(read_run(folder)))
    for report in (page, text):
        assert report.count("nDCG@k = (1 / |U|)") == 1
    assert "<li>nDCG@10, gap by gender: " in page
    assert "\n- nDCG@10, gap by gender: " in text
