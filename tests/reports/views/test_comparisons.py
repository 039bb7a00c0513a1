from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.core.measures import Direction
from recbias.reports.run import read_run
from recbias.reports.views import (
    Comparisons,
    collect_comparisons,
    find_better_side,
    find_wins,
)
from support.run_folders import RunSpec, make_run


def build_row(
    a: str, b: str, means: tuple[float, float], *, significant: object = "True"
) -> dict[str, Any]:
    return {
        "a": a,
        "b": b,
        "mean_a": means[0],
        "mean_b": means[1],
        "significant": significant,
        "p_adjusted": 0.5,
        "correction": "bonferroni",
        "family": "metric",
        "family_size": 3.0,
        "alpha": 0.05,
    }


def build_comparisons(*rows: Any) -> Comparisons:
    return Comparisons("m", "m", "higher", ("d", "1", "1"), "paired_t", "models", "", rows)


def test_a_model_wins_against_those_it_is_significantly_better_than() -> None:
    comparisons = build_comparisons(
        build_row("x", "y", (0.3, 0.1)),
        build_row("x", "z", (0.3, 0.2), significant="False"),
        build_row("y", "z", (0.1, 0.2), significant=True),
    )
    assert find_wins(comparisons) == {"x": {"y"}, "y": set(), "z": {"y"}}
    assert comparisons.significant == 2


@pytest.mark.parametrize(
    ("direction", "side"), [("higher", "b"), ("lower", "a"), ("zero", "b"), ("none", "")]
)
def test_the_better_side_depends_on_the_direction(direction: Direction, side: str) -> None:
    row = build_row("x", "y", (-0.3, 0.1)) | {"reach": 0.1}
    assert find_better_side(row, direction) == side


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
def test_a_mean_is_nearer_to_zero_only_if_the_distances_differ(
    means: tuple[float, float], reach: float, side: str
) -> None:
    assert find_better_side(build_row("x", "y", means) | {"reach": reach}, "zero") == side


def test_equal_biases_of_opposite_sign_win_against_nobody(tmp_path: Path) -> None:
    values = np.random.default_rng(3).normal(0.5, 0.3, size=400)
    means = [float(values.mean()), float((values - 1.0).mean())]  # about 0.5 and -0.5
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
    table["value"], table["ci_low"] = means, [mean - half for mean in means]
    table["ci_high"] = [mean + half for mean in means]
    table.to_csv(run.folder / "metrics.csv", index=False)
    pairs = pd.read_csv(run.folder / "significance.csv")
    pairs["mean_a"], pairs["mean_b"], pairs["significant"] = means[0], means[1], True
    pairs.to_csv(run.folder / "significance.csv", index=False)
    manifest = json.loads((run.folder / "manifest.json").read_text())
    (run.folder / "manifest.json").write_text(json.dumps(manifest | {"files": {}}))
    (comparisons,) = collect_comparisons(read_run(run.folder))
    assert comparisons.significant == 1
    assert find_wins(comparisons) == {"MostPop": set(), "Random": set()}


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({}, "paired t-test, Bonferroni over 3 comparisons per metric, alpha 0.05"),
        ({"correction": "none"}, "paired t-test, no correction, alpha 0.05"),
        (
            {"correction": "bh", "family": "report", "family_size": 84.0},
            "paired t-test, Benjamini-Hochberg over all 84 comparisons of the run, alpha 0.05",
        ),
        (
            {"family": "19", "family_size": 19.0},
            "paired t-test, Bonferroni over 19 comparisons, alpha 0.05",
        ),
        (
            {"family_size": float("nan")},
            "paired t-test, Bonferroni over n comparisons per metric, alpha 0.05",
        ),
    ],
)
def test_the_method_names_test_correction_and_family(changes: dict[str, Any], method: str) -> None:
    assert build_comparisons(build_row("x", "y", (1, 2)) | changes).method() == method


def test_a_rank_test_that_contradicts_the_means_has_no_better_side() -> None:
    row = build_row("x", "y", (0.3, 0.1)) | {"effect_size": -0.62}
    assert not find_better_side(row, "higher")
    assert not find_better_side(row, "lower")
    assert find_better_side(row | {"effect_size": 0.62}, "higher") == "a"


def test_a_test_with_two_corrections_makes_two_families(tmp_path: Path) -> None:
    folder = make_run(tmp_path, RunSpec(models=("x", "y"), metrics=("HR",)))
    pairs = pd.read_csv(folder / "significance.csv")
    uncorrected = pairs.assign(correction="none", significant=True)
    corrected = pairs.assign(significant=False)
    pd.concat([corrected, uncorrected]).to_csv(folder / "significance.csv", index=False)
    first, second = collect_comparisons(read_run(folder))
    assert (first.significant, second.significant) == (0, 1)
    assert "Bonferroni" in first.method()
    assert "no correction" in second.method()
