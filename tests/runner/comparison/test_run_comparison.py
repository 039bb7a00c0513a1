from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recbias.core.errors import MixedRuns
from recbias.runs.compare import COLUMNS, RunFrames, compare_runs, pair_runs


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
    table = compare_runs(pair_runs([make_run("a", A), make_run("b", B)]))
    assert list(table.columns) == list(COLUMNS)
    knn = table[table["model"] == "ItemKNN"].iloc[0]
    # 1.75/4 against 1.0/4
    assert (knn["value_a"], knn["value_b"], knn["difference"]) == (0.4375, 0.25, -0.1875)
    test = stats.ttest_rel(B["ItemKNN"], A["ItemKNN"])
    expected, interval = test.pvalue, test.confidence_interval()
    assert [knn["ci_low"], knn["ci_high"]] == pytest.approx([interval.low, interval.high])
    assert knn["p"] == pytest.approx(expected, rel=1e-10)
    assert knn["p_adjusted"] == pytest.approx(min(1.0, 2 * expected), rel=1e-10)
    assert knn["n"] == 4


def add_replicates(run: RunFrames, samples: list[float], queries: str) -> RunFrames:
    """Return a run whose model EASE has a metric of a whole set."""
    rows = run.metrics[run.metrics["model"] == "EASE"].drop(columns="value")
    table = pd.DataFrame({"value": samples, "queries": queries, "df": math.nan})
    return replace(run, per_unit=None, replicates=rows.merge(table, how="cross"))


def test_values_of_whole_sets_are_tested_by_the_bootstrap_of_the_same_queries() -> None:
    a, b = make_run("a", A), make_run("b", B)
    samples = [0.5, 0.5, 0.75], [0.75, 1.0, 1.0]
    pair = [add_replicates(run, x, "q") for run, x in zip((a, b), samples, strict=True)]
    row = compare_runs(pair_runs(pair)).set_index("model").loc["EASE"]
    # 0.5 and 0.5; differences of the samples 0.25, 0.5, 0.25: sd 0.1443
    assert row["test"] == "paired_bootstrap"
    half = stats.norm.ppf(0.975) * np.std([0.25, 0.5, 0.25], ddof=1)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([-half, half])
    other = [pair[0], add_replicates(b, samples[1], "other queries")]
    assert compare_runs(pair_runs(other))["p"].isna().all()


def add_addresses(run: RunFrames, **addresses: str) -> RunFrames:
    keys = {"dataset": "d", "seed": 42, "fold": 1, "metric": "nDCG", "k": 10}
    rows = [{**keys, "model": model, "address": text} for model, text in addresses.items()]
    return replace(run, manifest={"addresses": rows})


def test_values_with_the_same_address_are_excluded_and_not_counted_as_tests() -> None:
    a = add_addresses(make_run("a", A), ItemKNN="1", EASE="2")
    b = add_addresses(make_run("b", B), ItemKNN="3", EASE="2")
    (row,) = compare_runs(pair_runs([a, b])).to_dict("records")
    assert row["model"] == "ItemKNN"
    assert row["p_adjusted"] == row["p"]
    assert compare_runs(pair_runs([a, a])).empty


def test_runs_without_a_shared_metric_value_are_refused() -> None:
    with pytest.raises(MixedRuns, match="share no metric value"):
        compare_runs(pair_runs([make_run("a", {"X": [1.0]}), make_run("b", {"Y": [1.0]})]))


def test_everything_is_over_the_units_that_both_runs_have() -> None:
    # u1, u2 and u3: 0.25, 1, 0 before; in other order 0.75, 1.5, 0.25 after
    run = make_run("b", {"ItemKNN": [0.25, 0.75, 1.5, 4.0]}, ["u3", "u1", "u2", "x"])
    (row,) = compare_runs(pair_runs([make_run("a", A), run])).to_dict("records")
    test = stats.ttest_rel([0.75, 1.5, 0.25], [0.25, 1.0, 0.0])
    interval = test.confidence_interval()
    assert (row["n"], row["only_a"], row["only_b"]) == (3, 1, 1)
    assert (row["value_a"], row["value_b"]) == pytest.approx((1.25 / 3, 2.5 / 3))
    assert row["difference"] == pytest.approx(1.25 / 3)
    assert row["p"] == pytest.approx(test.pvalue)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([interval.low, interval.high])


def test_values_without_a_shared_unit_are_listed_without_a_test() -> None:
    table = compare_runs(pair_runs([make_run("a", A), make_run("b", B, ["v", "w", "x", "y"])]))
    assert table["p"].isna().all()
    assert (table["n"] == 0).all()
    assert not table["difference"].isna().any()


def test_the_test_over_seeds_is_of_the_mean_of_each_unit() -> None:
    rng = np.random.default_rng(2)
    values = rng.random((2, 2, 6))  # run, seed, user
    runs = []
    for label, seeds in zip("ab", values, strict=True):
        frames = [make_run(label, {"X": [*scores]}) for scores in seeds]
        units = [frame.per_unit.assign(seed=n) for n, frame in enumerate(frames)]
        metrics = [frame.metrics.assign(seed=n) for n, frame in enumerate(frames)]
        metrics.append(metrics[0].assign(seed="all", value=seeds.mean()))
        runs.append(RunFrames(label, pd.concat(metrics), pd.concat(units)))
    row = compare_runs(pair_runs(runs)).set_index("seed").loc["all"]
    test = stats.ttest_rel(values[1].mean(axis=0), values[0].mean(axis=0))
    interval = test.confidence_interval()
    assert (row["n"], row["p"]) == (6, pytest.approx(test.pvalue))
    assert row["difference"] == pytest.approx(values[1].mean() - values[0].mean())
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([interval.low, interval.high])


def test_the_test_over_seeds_is_of_the_shared_units_of_each() -> None:
    """Of u1 and u2, which both runs have, the means over two seeds are 1 and 3, then 2 and 4."""
    runs = []
    for label, shift, users in (("a", 0.0, ["u1", "u2", "x"]), ("b", 1.0, ["u1", "u2", "y"])):
        frames = [
            make_run(label, {"X": [seed + shift, 2 + seed + shift, 9.0]}, users) for seed in (0, 2)
        ]
        units = [frame.per_unit.assign(seed=n) for n, frame in enumerate(frames)]
        whole = pd.concat(units).astype({"unit_id": "category"})
        metrics = [frame.metrics.assign(seed=n) for n, frame in enumerate(frames)]
        metrics.append(metrics[0].assign(seed="all", value=5.0))
        runs.append(RunFrames(label, pd.concat(metrics), whole))
    row = compare_runs(pair_runs(runs)).set_index("seed").loc["all"]
    assert (row["value_a"], row["value_b"], row["difference"], row["n"]) == (2.0, 3.0, 1.0, 2)


def test_a_label_of_two_measures_is_left_out() -> None:
    a, b = make_run("a", A), make_run("b", B)
    a, b = (
        replace(run, manifest={"metrics": [{"metric": "nDCG", "k": 10, "name": name}]})
        for run, name in ((a, "nDCG"), (b, "HR"))
    )
    with pytest.raises(MixedRuns, match="nDCG@10 is nDCG in a and HR in b"):
        compare_runs(pair_runs([a, b]))


def test_other_test_items_are_named() -> None:
    keys = {"dataset": "d", "seed": 42, "fold": 1, "queries": "q"}
    a, b = (
        replace(make_run(label, A), manifest={"evaluated": [keys | {"test": label}]})
        for label in "ab"
    )
    first, second = pair_runs([a, b])[0], pair_runs([a, a])[0]
    assert first.describe_differences() == ["a and b have different test items of d."]
    assert second.describe_differences() == []
