from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.measurements.scores import Direction
from recbias.reports.views.comparisons import (
    Comparisons,
    beaten,
    better_side,
    comparisons,
    in_words,
)
from recbias.reports.views.run_tables import read_run
from support.run_folders import RunSpec, make_run


def row(a: str, b: str, means: tuple[float, float], *, significant: object = "True") -> Any:
    return {
        "a": a,
        "b": b,
        "mean_a": means[0],
        "mean_b": means[1],
        "significant": significant,
        "correction": "bonferroni",
        "family": "metric",
        "family_size": 3.0,
        "alpha": 0.05,
    }


def family(*rows: Any, direction: Direction = "higher", **changes: Any) -> Comparisons:
    given = {"title": "m", "place": ("d", "1", "1"), "test": "paired_t", "between": "models"}
    return Comparisons(**{**given, "part": "", **changes}, direction=direction, rows=rows)


def test_a_model_beats_those_it_is_significantly_better_than() -> None:
    found = family(
        row("x", "y", (0.3, 0.1)),
        row("x", "z", (0.3, 0.2), significant="False"),
        row("y", "z", (0.1, 0.2), significant=True),
    )
    assert beaten(found) == {"x": {"y"}, "y": set(), "z": {"y"}}
    assert found.significant == 2


@pytest.mark.parametrize(
    ("direction", "side"), [("higher", "b"), ("lower", "a"), ("zero", "b"), ("none", "")]
)
def test_the_better_side_goes_by_the_direction(direction: Direction, side: str) -> None:
    assert better_side({**row("x", "y", (-0.3, 0.1)), "reach": 0.1}, direction) == side


@pytest.mark.parametrize(
    ("means", "reach", "side"),
    [
        ((0.30, -0.31), 0.02, ""),  # as far from 0 on either side: the sum is -0.01
        ((0.30, -0.35), 0.02, "a"),  # the sum is -0.05
        ((0.30, 0.10), 0.02, "b"),
        ((0.01, -0.01), 0.0, ""),
        ((0.30, 0.10), float("nan"), ""),
    ],
)
def test_nearer_to_zero_is_claimed_only_where_the_distances_differ(
    means: tuple[float, float], reach: float, side: str
) -> None:
    assert better_side({**row("x", "y", means), "reach": reach}, "zero") == side


def test_two_biases_as_large_on_either_side_of_zero_beat_nobody(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    too_much = rng.normal(0.5, 0.3, size=400)
    found = [too_much, too_much - 1.0]  # means about 0.5 and -0.5
    spec = {
        "name": "opposite",
        "dataset": {"name": "demo", "n_users": 40, "n_items": 30},
        "models": ["MostPop", "Random"],
        "metrics": ["log_popularity_difference"],
        "split": {"name": "random"},
        "tests": ["paired_t"],
    }
    run = recbias.run(spec, out=tmp_path)
    table = pd.read_csv(run.folder / "metrics.csv")
    half = 1.966 * 0.3 / 20
    means = [float(each.mean()) for each in found]
    table["value"], table["ci_low"] = means, [each - half for each in means]
    table["ci_high"] = [each + half for each in means]
    table.to_csv(run.folder / "metrics.csv", index=False)
    pairs = pd.read_csv(run.folder / "significance.csv")
    pairs["mean_a"], pairs["mean_b"], pairs["significant"] = means[0], means[1], True
    pairs.to_csv(run.folder / "significance.csv", index=False)
    (tested,) = comparisons(read_run(run.folder))
    assert tested.significant == 1
    assert beaten(tested) == {"MostPop": set(), "Random": set()}


def test_equal_means_have_no_better_side() -> None:
    assert not better_side(row("x", "y", (0.1, 0.1)), "higher")
    assert not better_side(row("x", "y", (float("nan"), 0.1)), "higher")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "paired t-test, Bonferroni over the 3 comparisons of a metric, alpha 0.05"),
        ({"correction": "none"}, "paired t-test, no correction, alpha 0.05"),
        (
            {"correction": "bh", "family": "report", "family_size": 84.0},
            "paired t-test, Benjamini-Hochberg over all 84 comparisons of the run, alpha 0.05",
        ),
        (
            {"family": "19", "family_size": 19.0},
            "paired t-test, Bonferroni over 19 comparisons, alpha 0.05",
        ),
    ],
)
def test_the_method_says_test_correction_and_family(changes: dict[str, Any], said: str) -> None:
    assert family(row("x", "y", (1, 2)) | changes).method() == said


def test_families_that_are_corrected_alike_are_said_together() -> None:
    sizes = [family(row("x", "y", (1, 2)) | {"family_size": each}) for each in (3.0, 250.0, 48.0)]
    alone = family(row("x", "y", (1, 2)) | {"family_size": 1.0})
    said = "paired t-test, Bonferroni over the {} of a metric, alpha 0.05"
    assert in_words(sizes) == said.format("3 to 250 comparisons")
    assert in_words([alone]) == said.format("1 comparison")
    none = family(row("x", "y", (1, 2)) | {"correction": "none"})
    assert in_words([alone, none]).count(";") == 1


def test_families_stand_in_the_metrics_order_with_every_pair(tmp_path: Path) -> None:
    found = comparisons(read_run(make_run(tmp_path, RunSpec(metrics=("MRR", "HR")))))
    assert [each.title for each in found] == ["MRR@10", "HR@10"]
    assert [len(each.rows) for each in found] == [21, 21]  # 7 * 6 / 2
    assert found[0].names()[:2] == ["Random", "MostPop"]


def test_comparisons_of_groups_come_behind_those_of_models(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(metrics=("HR",)))
    path = tmp_path / "significance.csv"
    frame = pd.read_csv(path)
    groups = frame.head(2).assign(between="groups", model="ItemKNN", a="age=1", b="age=2")
    pd.concat([groups, frame]).to_csv(path, index=False)
    found = comparisons(read_run(tmp_path))
    assert [each.between for each in found] == ["models", "groups"]
    assert [each.of_models for each in found] == [True, False]


def test_models_within_a_group_are_a_family_of_their_own(tmp_path: Path) -> None:
    make_run(tmp_path, RunSpec(metrics=("HR",)))
    path = tmp_path / "significance.csv"
    frame = pd.read_csv(path, keep_default_na=False)
    pd.concat([frame, frame.assign(group="age=1")]).to_csv(path, index=False)
    assert [each.part for each in comparisons(read_run(tmp_path))] == ["", "age=1"]


def test_a_run_without_tests_has_no_comparisons(tmp_path: Path) -> None:
    assert comparisons(read_run(make_run(tmp_path, RunSpec(significance=False)))) == ()


def test_a_test_of_ranks_that_points_the_other_way_claims_nothing() -> None:
    lower_for_most = {**row("x", "y", (0.3, 0.1)), "effect_size": -0.62}
    assert not better_side(lower_for_most, "higher")
    assert not better_side(lower_for_most, "lower")
    assert better_side({**lower_for_most, "effect_size": 0.62}, "higher") == "a"


def test_the_same_test_with_two_corrections_is_two_sets_of_comparisons(tmp_path: Path) -> None:
    folder = make_run(tmp_path, RunSpec(models=("x", "y"), metrics=("HR",)))
    pairs = pd.read_csv(folder / "significance.csv")
    loose = pairs.assign(correction="none", significant=True)
    strict = pairs.assign(significant=False)
    pd.concat([strict, loose]).to_csv(folder / "significance.csv", index=False)
    first, second = comparisons(read_run(folder))
    assert (first.significant, second.significant) == (0, 1)
    assert "Bonferroni" in first.method()
    assert "no correction" in second.method()
