from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recbias.core.errors import MixedRuns
from recbias.runner.results.run_comparison import COLUMNS, RunFrames, compare_runs


def make_run(
    label: str, values: dict[str, list[float]], units: list[str] | None = None
) -> RunFrames:
    """Return a run of one metric with the per-unit values of each model."""
    keys = {"dataset": "d", "seed": 42, "fold": 1, "metric": "nDCG", "k": 10.0}
    blank = {"group": "", "target": ""}
    metrics = [
        {**keys, **blank, "model": model, "value": float(np.nanmean(scores))}
        for model, scores in values.items()
    ]
    ids = units or [f"u{number}" for number in range(len(next(iter(values.values()))))]
    per_unit = [
        {**keys, **blank, "model": model, "unit_id": unit, "value": value}
        for model, scores in values.items()
        for unit, value in zip(ids, scores, strict=True)
    ]
    return RunFrames(label, pd.DataFrame(metrics), pd.DataFrame(per_unit))


A = {"ItemKNN": [0.5, 0.25, 1.0, 0.0], "EASE": [0.5, 0.5, 0.75, 0.25]}
B = {"ItemKNN": [0.25, 0.25, 0.5, 0.0], "EASE": [0.5, 0.5, 0.5, 0.5]}


def test_the_same_value_of_two_runs_is_tested_over_paired_units() -> None:
    table = compare_runs([make_run("a", A), make_run("b", B)])
    assert list(table.columns) == list(COLUMNS)
    knn = table[table["model"] == "ItemKNN"].iloc[0]
    # 1.75/4 against 1.0/4
    assert (knn["value_a"], knn["value_b"], knn["difference"]) == (0.4375, 0.25, 0.1875)
    expected = stats.ttest_rel(A["ItemKNN"], B["ItemKNN"]).pvalue
    assert knn["p"] == pytest.approx(expected, rel=1e-10)
    assert knn["p_adjusted"] == pytest.approx(min(1.0, 2 * expected), rel=1e-10)
    assert knn["n"] == 4


def test_values_with_different_units_are_listed_without_a_test() -> None:
    table = compare_runs([make_run("a", A), make_run("b", B, ["u0", "u1", "u2", "x"])])
    assert table["p"].isna().all()
    assert (table["n"] == 0).all()
    assert not table["difference"].isna().any()


def test_all_pairs_of_three_runs_are_compared() -> None:
    table = compare_runs([make_run("a", A), make_run("b", B), make_run("c", B)])
    assert set(zip(table["a"], table["b"], strict=True)) == {("a", "b"), ("a", "c"), ("b", "c")}


def test_values_without_units_are_listed_without_a_test() -> None:
    a, b = make_run("a", A), make_run("b", B)
    table = compare_runs([RunFrames("a", a.metrics, None), RunFrames("b", b.metrics, None)])
    assert table["p"].isna().all()


def test_runs_without_a_shared_metric_value_are_refused() -> None:
    with pytest.raises(MixedRuns, match="share no metric value"):
        compare_runs([make_run("a", {"X": [1.0]}), make_run("b", {"Y": [1.0]})])


def test_metrics_without_a_cutoff_are_matched() -> None:
    runs = []
    for label, values in (("a", A), ("b", B)):
        run = make_run(label, values)
        blank = {"k": math.nan}
        units = run.per_unit.assign(**blank) if run.per_unit is not None else None
        runs.append(RunFrames(label, run.metrics.assign(**blank), units))
    table = compare_runs(runs)
    assert table["p"].notna().all()
