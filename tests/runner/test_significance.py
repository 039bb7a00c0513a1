from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_array

import recbias
from recbias.config.specs import PluginSpec
from recbias.core.context import collect_warnings
from recbias.core.dataset import FloatArray, Vocabulary
from recbias.core.errors import UnalignedScores
from recbias.core.measures import METRICS, SIGNIFICANCE, Contrast, Measurement, UnitScores
from recbias.metrics.perplexity import PerplexityGap
from recbias.runner.results import Measurements, ModelMeasurement
from recbias.runner.significance import (
    VersionDifference,
    _limit_differences,
    average_shared_units,
    compare_models,
    measure_price,
    resample_mean,
)
from recbias.runner.stages import derive_bootstrap_seed
from recbias.runs.power import (
    PowerQuestion,
    PowerTables,
    compute_power_rows,
    cross_prompts,
)
from recbias.statistics.bootstrap import resample_sums
from recbias.statistics.compare import SystemEstimates
from recbias.statistics.intervals import compute_power, t_interval
from recbias.statistics.paired import ChiSquared, PairedT, SignFlip
from support.specs import make_small_spec

TEST = PluginSpec("tests", "paired_t", "paired_t", PairedT(), {}, ("tests", 0))
METRIC = PluginSpec("metrics", "nDCG", "nDCG", None, {"k": 10}, ("metrics", 0))

COVERAGE = PluginSpec("metrics", "ItemCoverage", "ItemCoverage", None, {"k": 10}, ("metrics", 1))


def make_row(
    model: str, values: list[float], ids: list[str] | None = None, **keys: Any
) -> ModelMeasurement:
    names = np.array(ids or [f"u{user}" for user in range(len(values))], dtype=object)
    measurement = Measurement.from_units(UnitScores("user", names, np.array(values)))
    fit_keys = {"dataset": "d", "seed": 42, "fold": 1, **keys}
    return ModelMeasurement(model=model, metric=METRIC, measurement=measurement, **fit_keys)


A, B, C = [0.5, 0.25, 1.0, 0.0], [0.25, 0.25, 0.5, 0.125], [1.0, 1.0, 0.75, 1.0]


def test_all_pairs_of_models_are_compared_on_the_same_units() -> None:
    table, _ = compare_models(
        Measurements([make_row("a", A), make_row("b", B), make_row("c", C)]), [TEST], 42
    )
    pairs = list(zip(table["a"], table["b"], strict=True))
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    expected = stats.ttest_rel(A, B).pvalue
    assert table["p"][0] == pytest.approx(expected, rel=1e-10)
    assert table["p_adjusted"][0] == pytest.approx(min(1.0, 3 * expected), rel=1e-10)
    assert table["family_size"].tolist() == [3, 3, 3]


def test_models_are_compared_within_folds_and_on_the_means_of_units() -> None:
    rows = [
        make_row("a", A, fold=1),
        make_row("b", B, fold=1),
        make_row("a", C, fold=2),
        make_row("b", A, fold=2),
    ]
    table, _ = compare_models(Measurements(rows), [TEST], 42)
    assert table["fold"].tolist() == [1, 2, "all"]
    means = [(np.array(A) + np.array(C)) / 2, (np.array(B) + np.array(A)) / 2]
    expected = stats.ttest_rel(*means).pvalue
    assert table["p"][2] == pytest.approx(expected, rel=1e-10)


def test_exact_tests_are_corrected_together_with_the_others() -> None:
    spec = PluginSpec("tests", "chi_squared", "chi_squared", ChiSquared(), {}, ("tests", 0))
    rows = [
        replace(row, measurement=replace(row.measurement, target=f"{n} units"))
        for n in (20, 2)
        for row in (make_row("a", [1.0] * n), make_row("b", [0.0] * n))
    ]
    table, _ = compare_models(Measurements(rows), [spec], 42)
    assert table["test"].tolist() == ["chi_squared", "fisher_exact"]
    assert table["family_size"].tolist() == [2, 2]
    assert table["p_adjusted"].tolist()[1] == pytest.approx(2 / 3)


def test_groups_that_differ_without_a_spread_to_test_are_counted() -> None:
    test = Contrast("groups", "g=c", "g=a", "welch_t", 6, 3.0, 1.0, 2.0, math.nan, math.nan)
    rows = [make_row(name, [1.0, 2.0]) for name in "ab"]
    rows = [replace(row, measurement=replace(row.measurement, contrasts=(test,))) for row in rows]
    with collect_warnings() as warnings:
        compare_models(Measurements(rows), [], 42)
    message = "2 of 2 comparisons within models have no p-value (nDCG by welch_t): the sides "
    reason = "a side has fewer than two values, or only equal ones"
    assert warnings == [f"{message}differ, and no test is possible, as {reason}"]


@pytest.mark.parametrize(
    ("n", "n_units", "is_warned"), [(10, 20, True), (10, 3, False), (99, 20, False)]
)
def test_too_few_permutations_for_the_level_are_named(
    n: int, n_units: int, is_warned: bool
) -> None:
    spec = PluginSpec("tests", "sign_flip", "sign_flip", SignFlip(permutations=n), {}, ("tests",))
    values = np.random.default_rng(0).random((2, n_units))
    rows = [make_row(name, row.tolist()) for name, row in zip("ab", values, strict=True)]
    with collect_warnings() as notes:
        compare_models(Measurements(rows), [spec], 42)
    assert bool(notes) == is_warned
    for note in notes:
        assert note.startswith(
            "sign_flip: 10 permutations give no p-value below 0.091, so nothing"
        )
        assert note.endswith("set permutations: 10000")


def test_models_measured_on_different_units_are_refused() -> None:
    with pytest.raises(UnalignedScores, match="different units"):
        compare_models(
            Measurements([make_row("a", A), make_row("b", B, ["w", "x", "y", "z"])]), [TEST], 42
        )


def test_metrics_of_the_whole_set_are_compared_by_bootstrap_replicates() -> None:
    rng = np.random.default_rng(1)
    replicates = rng.normal(0.5, 0.01, size=999)
    measurements = [Measurement(0.5, 10, 0, replicates=replicates)]
    measurements.append(Measurement(0.3, 10, 0, replicates=replicates[::-1] - 0.2))
    rows = [
        ModelMeasurement("d", name, 42, 1, METRIC, measurement)
        for name, measurement in zip("ab", measurements, strict=True)
    ]
    table, _ = compare_models(Measurements(rows), [TEST], 42)
    assert table["test"].tolist() == ["paired_bootstrap"]
    assert table["difference"][0] == pytest.approx(0.2)
    z = 0.2 / (replicates - replicates[::-1]).std(ddof=1)
    assert table["p"][0] == pytest.approx(2 * stats.norm.sf(z), rel=1e-6)


def test_gaps_of_several_groups_are_not_compared_where_a_group_has_no_value() -> None:
    rng = np.random.default_rng(1)
    parts = {name: rng.normal(size=50) for name in ("g=a", "g=b", "g=c")}
    undefined = parts | {"g=c": np.append(parts["g=c"][:-1], np.nan)}
    for of_groups, n_rows in ((parts, 1), (undefined, 0)):
        gap = Measurement(0.5, 9, 0, parts=of_groups)
        rows = [ModelMeasurement("d", name, 42, 1, METRIC, gap) for name in "ab"]
        with collect_warnings():
            table, failures = compare_models(Measurements(rows), [TEST], 42)
        assert (len(table), failures) == (n_rows, [])


def test_each_test_has_rows_and_the_bootstrap_is_not_repeated() -> None:
    from recbias.statistics.paired import Wilcoxon

    wilcoxon = PluginSpec("tests", "wilcoxon", "wilcoxon", Wilcoxon(), {}, ("tests", 1))
    coverage = Measurement(0.5, 10, 0, replicates=np.array([0.4, 0.5, 0.6]))
    rows = [make_row("a", A), make_row("b", B)]
    rows += [ModelMeasurement("d", name, 42, 1, COVERAGE, coverage) for name in "ab"]
    table, _ = compare_models(Measurements(rows), [TEST, wilcoxon], 42)
    assert table["test"].tolist() == ["paired_t", "paired_bootstrap", "wilcoxon"]
    assert table["n"].tolist() == [4, 10, 4]


def test_metrics_with_the_same_tests_have_them_once() -> None:
    """Of one gap as a difference and as t the tests are the same; those of its logarithm not."""
    rows = []
    for label, settings, p in (
        ("gap", {}, 0.01),
        ("t", {"estimate": "t"}, 0.01),
        ("log", {"scale": "log"}, 0.02),
        ("log t", {"scale": "log", "estimate": "t"}, 0.02),
    ):
        spec = make_gap(label, **settings)
        test = Contrast("groups", "group=a", "group=b", "paired_t", 20, 3.0, 2.0, 1.0, 2.5, p)
        for target in ("", "within 3 sd"):
            measurement = Measurement(1.0, 20, 0, target=target, contrasts=(test,))
            rows += [ModelMeasurement("d", "m", seed, 1, spec, measurement) for seed in (1, 2)]
    plugin = PairedT(correction="holm", family="report")
    table, _ = compare_models(
        Measurements(rows), [PluginSpec("tests", "paired_t", "t", plugin, {}, ())], 42
    )
    assert sorted(zip(table["metric"], table["seed"], table["target"], strict=True)) == [
        (label, seed, target)
        for label in ("gap", "log")
        for seed in (1, 2)
        for target in ("", "within 3 sd")
    ]
    assert set(table["family_size"]) == {8}
    of_t = Measurements([row for row in rows if row.metric.label == "t"])
    alone, _ = compare_models(of_t, [], 42)
    assert len(alone) == 4  # without the metric that has them first, they stay


def make_gap(label: str, **settings: Any) -> PluginSpec:
    plugin = PerplexityGap(**settings)
    return PluginSpec("metrics", "perplexity_gap", label, plugin, vars(plugin), ())


def test_tests_that_differ_in_a_setting_are_told_apart_in_every_file(tmp_path: Path) -> None:
    signs = [{"name": "sign_flip", "permutations": n} for n in (100, 1000)]
    spec = make_small_spec(tests=[*signs, "paired_t"], report={"formats": ["md", "card"]})
    run = recbias.run(spec, out=tmp_path)
    of_metric = run.significance[run.significance["metric"] == "nDCG"]
    names = ["sign_flip(permutations=100)", "sign_flip(permutations=1000)", "paired_t"]
    assert of_metric["test"].tolist() == names
    assert (of_metric["family_size"] == 1).all()
    page = (run.folder / "report.md").read_text("utf-8")
    assert "sign-flip permutation test (permutations=1000)" in page
    assert recbias.verify(run.folder / "card.json", run).is_same
    alone = recbias.run({**spec, "tests": signs[1:], "name": "alone"}, out=tmp_path)
    assert alone.significance["test"].tolist() == ["sign_flip", "sign_flip"]
    again = run.significance[run.significance["test"] == names[1]]
    assert again["p"].tolist() == alone.significance["p"].tolist()


N_SAMPLES = 1000


def make_ids(n: int) -> Any:
    return np.array([f"user {number}" for number in range(n)], dtype=object)


def make_accuracy(values: FloatArray) -> VersionDifference:
    """Return the difference of two models with values by unit."""
    points = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in values])
    estimates = SystemEstimates(
        ("a", "b"), values, points, None, {}, ids=make_ids(values.shape[1])
    )
    return VersionDifference(estimates, (0, 1))


def resample(values: FloatArray, ids: Any) -> FloatArray:
    """Return the mean of each row on the samples of a ``WholeSet``."""
    seed = derive_bootstrap_seed(Vocabulary(ids))
    sums = np.concatenate([*resample_sums(csr_array(values.T), N_SAMPLES, seed)])
    return np.asarray(sums.T / values.shape[1])


def make_bias(values: FloatArray, ids: Any) -> VersionDifference:
    """Return the difference of a metric of the whole set, which is a mean here."""
    points, n = values.mean(axis=1), values.shape[1]
    replicates = resample(values, ids)
    return VersionDifference(SystemEstimates(("a", "b"), None, points, replicates, {}, n), (0, 1))


def test_values_before_and_after_are_of_the_users_of_their_difference() -> None:
    nan = math.nan
    accuracy = make_accuracy(np.array([[0.5, nan, 0.7, 0.1], [0.4, nan, 0.1, 0.3]]))
    bias = make_accuracy(np.array([[1.0, 9.0, 2.0, nan], [0.5, 9.0, 0.5, 0.0]]))
    rows = [(part.estimates, row) for part in (accuracy, bias) for row in (0, 1)]
    before, after, bias_before, bias_after = average_shared_units(rows)
    assert [before, after, bias_before, bias_after] == pytest.approx([0.6, 0.25, 1.5, 0.5])
    columns = measure_price(accuracy, bias, shares_samples=True)
    assert columns["n"] == 2
    assert before - after == pytest.approx(columns["accuracy_lost"])
    assert bias_before - bias_after == pytest.approx(columns["bias_removed"])
    whole = SystemEstimates(("a", "b"), None, np.array([0.3, 0.2]), None, {}, 4)
    both = [*rows[:2], (whole, 0), (whole, 1)]
    assert average_shared_units(both) == [*accuracy.estimates.points, 0.3, 0.2]
    nobody = make_accuracy(np.array([[nan, 1.0], [0.5, nan]]))
    assert np.isnan(average_shared_units([(nobody.estimates, 0), (nobody.estimates, 1)])).all()


def test_accuracy_itself_as_bias_has_the_price_1_without_spread() -> None:
    values = np.stack([np.arange(40.0), np.arange(40.0) ** 0.5])
    row = measure_price(
        make_accuracy(values), make_bias(values, make_ids(40)), shares_samples=True
    )
    assert [row[name] for name in ("price", "price_low", "price_high")] == pytest.approx([1, 1, 1])


def test_samples_are_of_the_defined_values_where_the_metric_is_of_as_many() -> None:
    values = np.array([[3.0, np.nan, 5.0, 9.0], [1.0, np.nan, 1.0, 1.0]])
    lost = make_accuracy(values)
    defined = resample_mean(lost, 3, 200)
    of_all = resample_mean(lost, 4, 200)
    assert defined is not None
    assert of_all is not None
    assert set(np.round(defined * 3, 9)) <= {
        float(a + b + c) for a in (2, 4, 8) for b in (2, 4, 8) for c in (2, 4, 8)
    }
    assert np.nanmin(of_all) >= 2
    assert resample_mean(lost, 2, 200) is None  # another number of queries
    unknown = replace(lost, estimates=replace(lost.estimates, ids=None))
    assert resample_mean(unknown, 4, 200) is None


KEYS = {"dataset": "d", "model": "", "seed": "1", "fold": "1", "metric": "M", "k": 10.0}
PLACE = {"group": "", "target": ""}
LEVEL = {"correction": "holm", "family": "metric", "family_size": 2.0, "alpha": 0.05}


def make_tables(
    rows: list[dict[str, Any]],
    metrics: list[dict[str, Any]] | None = None,
    per_unit: pd.DataFrame | None = None,
) -> PowerTables:
    significance = pd.DataFrame(rows, columns=list(SIGNIFICANCE.names))
    values = pd.DataFrame(metrics or [], columns=list(METRICS.names))
    manifest = {"queries": [{"unit": "user"}]}
    return PowerTables(values, significance, per_unit, manifest)


def compare_pairs(differences: FloatArray, **changes: Any) -> dict[str, Any]:
    values = np.stack([differences, np.zeros(differences.size)])
    columns = PairedT().pairs(values, np.random.default_rng(0))
    numbers = {name: float(column[0]) for name, column in columns.items()}
    sides = {"a": "A", "b": "B", "test": "paired_t", "between": "models"}
    return {**KEYS, **PLACE, **numbers, **sides, **LEVEL, **changes}


@pytest.mark.parametrize(
    ("differences", "remark"),
    [
        (np.full(5, 0.5), "undefined: no variance among the 5 users"),
        (np.array([0.5]), "fewer than 2 units"),
        (np.array([]), "fewer than 2 units"),
    ],
)
def test_row_without_variance_is_undefined_with_a_remark(
    differences: FloatArray, remark: str
) -> None:
    table = compute_power_rows(
        make_tables([compare_pairs(differences)]), PowerQuestion(difference=0.1)
    )
    assert table["remark"].tolist() == [remark]
    assert table[["detectable", "needed"]].isna().all(axis=None)


def test_a_comparison_without_a_number_of_units_has_a_detectable_difference_only() -> None:
    row = compare_pairs(np.arange(6.0), test="gap_change", n=math.nan, df=20.0)
    (answer,) = compute_power_rows(make_tables([row]), PowerQuestion(difference=0.1)).to_dict(
        "records"
    )
    assert answer["detectable"] > 0
    assert answer["remark"] == "the number of units is not known"


def make_crossed(seed: int = 0) -> tuple[list[str], FloatArray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(6, 1)) + rng.normal(0, 0.5, (1, 4)) + rng.normal(0, 1.0, (6, 4))
    ids = [f"t{template}:n{name}" for name in range(6) for template in range(4)]
    return ids, values.ravel()


def test_prompts_of_two_models_are_crossed_samples() -> None:
    ids, d = make_crossed()
    per_unit = pd.DataFrame(
        {
            **{name: KEYS[name] for name in ("dataset", "seed", "fold", "metric", "k")},
            **PLACE,
            "unit": "prompt",
            "unit_id": ids * 2,
            "model": ["A"] * 24 + ["B"] * 24,
            "value": np.concatenate([d, np.zeros(24)]),
        }
    )
    table = compute_power_rows(
        make_tables([compare_pairs(d)], per_unit=per_unit), PowerQuestion(difference=0.1)
    )
    assert table[["unit", "given", "n"]].to_numpy().tolist() == [
        ["name", "4 templates", 6],
        ["template", "6 names", 4],
    ]
    assert table["detectable"][0] == table["detectable"][1] > 0
    assert table["remark"].str.startswith("no number of ").all()


def test_crossed_error_equals_the_mean_squares() -> None:
    ids, d = make_crossed()
    table = d.reshape(6, 4)
    ms_name = 4 * table.mean(axis=1).var(ddof=1)
    ms_template = 6 * table.mean(axis=0).var(ddof=1)
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    ms_rest = (rest**2).sum() / 15
    assert min(ms_name, ms_template) > ms_rest  # no component is set to 0
    error, _ = cross_prompts(ids, d)[0].measure_error(np.array(6.0))
    assert float(error) ** 2 == pytest.approx((ms_name + ms_template - ms_rest) / 24)


def test_prompts_that_are_not_crossed_have_no_such_design() -> None:
    ids, d = make_crossed()
    assert cross_prompts(ids[:-1], d[:-1]) == []
    assert cross_prompts([f"u{row}" for row in range(24)], d) == []
    assert cross_prompts([*ids, "t0:neutral"], np.append(d, 5.0))[0].n == 6


def test_interval_gives_the_standard_error_of_a_bootstrap() -> None:
    low, high = t_interval(0.3, 0.2 * math.sqrt(9), 9)
    row = compare_pairs(np.arange(9.0), test="permutation", between="targets", df=8.0)
    row |= {"ci_low": float(low), "ci_high": float(high), "correction": "none"}
    (answer,) = compute_power_rows(make_tables([row]), PowerQuestion()).to_dict("records")
    assert float(compute_power(answer["detectable"], 0.2, 8, 0.05)) == pytest.approx(0.8)


def test_intervals_of_differences_end_where_two_values_differ_most() -> None:
    table = pd.DataFrame(
        {
            "metric": ["HR", "HR", "effect", "ARP"],
            "between": ["models", "groups", "prompts", "models"],
            "difference": [0.8, -0.9, 0.9, 7.0],
            "ci_low": [0.5, -1.3, 0.7, 6.0],
            "ci_high": [1.1, -0.5, 1.2, 8.0],
        }
    )
    _limit_differences(table, {"HR": (0.0, 1.0), "effect": (-1.0, 1.0), "ARP": (0.0, math.inf)})
    assert table["ci_low"].tolist() == [0.5, -1.0, 0.7, 6.0]
    assert table["ci_high"].tolist() == [1.0, -0.5, 1.0, 8.0]
