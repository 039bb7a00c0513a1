from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recbias.config.specs import PluginSpec
from recbias.core.context import collect_warnings
from recbias.core.errors import UnalignedScores
from recbias.core.measures import Contrast, Measurement, UnitScores
from recbias.metrics.perplexity import PerplexityGap
from recbias.runner.results import ModelMeasurement
from recbias.runner.significance import compare_models
from recbias.statistics.paired import ChiSquared, PairedT, SignFlip

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
    table, _ = compare_models([make_row("a", A), make_row("b", B), make_row("c", C)], [TEST], 42)
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
    table, _ = compare_models(rows, [TEST], 42)
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
    table, _ = compare_models(rows, [spec], 42)
    assert table["test"].tolist() == ["chi_squared", "fisher_exact"]
    assert table["family_size"].tolist() == [2, 2]
    assert table["p_adjusted"].tolist()[1] == pytest.approx(2 / 3)


def test_models_that_differ_by_the_same_amount_for_every_unit_are_no_test_of_a_family() -> None:
    rows = [make_row("a", A), make_row("b", B), make_row("c", [value - 0.25 for value in A])]
    with collect_warnings() as notes:
        table, _ = compare_models(rows, [TEST], 42)
    defined = table["p"].notna()
    assert defined.tolist() == [True, False, True]  # a - b, a - c, b - c
    assert table["family_size"].tolist() == [2, 2, 2]
    assert table.loc[defined, "p_adjusted"].tolist() == pytest.approx(
        np.minimum(2 * table.loc[defined, "p"], 1).tolist()
    )
    assert not table["significant"][1]
    assert "1 of 3 comparisons of models have no p-value (nDCG) and count in no family" in notes[0]


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
        compare_models(rows, [spec], 42)
    assert bool(notes) == is_warned
    for note in notes:
        assert note.startswith(
            "sign_flip: 10 permutations give no p-value below 0.091, so nothing"
        )
        assert note.endswith("set permutations: 10000")


def test_models_measured_on_different_units_are_refused() -> None:
    with pytest.raises(UnalignedScores, match="different units"):
        compare_models([make_row("a", A), make_row("b", B, ["w", "x", "y", "z"])], [TEST], 42)


def test_metrics_of_the_whole_set_are_compared_by_bootstrap_replicates() -> None:
    rng = np.random.default_rng(1)
    replicates = rng.normal(0.5, 0.01, size=999)
    measurements = [Measurement(0.5, 10, 0, replicates=replicates)]
    measurements.append(Measurement(0.3, 10, 0, replicates=replicates[::-1] - 0.2))
    rows = [
        ModelMeasurement("d", name, 42, 1, METRIC, measurement)
        for name, measurement in zip("ab", measurements, strict=True)
    ]
    table, _ = compare_models(rows, [TEST], 42)
    assert table["test"].tolist() == ["paired_bootstrap"]
    assert table["difference"][0] == pytest.approx(0.2)
    z = 0.2 / (replicates - replicates[::-1]).std(ddof=1)
    assert table["p"][0] == pytest.approx(2 * stats.norm.sf(z), rel=1e-6)


def test_each_test_has_rows_and_the_bootstrap_is_not_repeated() -> None:
    from recbias.statistics.paired import Wilcoxon

    wilcoxon = PluginSpec("tests", "wilcoxon", "wilcoxon", Wilcoxon(), {}, ("tests", 1))
    coverage = Measurement(0.5, 10, 0, replicates=np.array([0.4, 0.5, 0.6]))
    rows = [make_row("a", A), make_row("b", B)]
    rows += [ModelMeasurement("d", name, 42, 1, COVERAGE, coverage) for name in "ab"]
    table, _ = compare_models(rows, [TEST, wilcoxon], 42)
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
    table, _ = compare_models(rows, [PluginSpec("tests", "paired_t", "t", plugin, {}, ())], 42)
    assert sorted(zip(table["metric"], table["seed"], table["target"], strict=True)) == [
        (label, seed, target)
        for label in ("gap", "log")
        for seed in (1, 2)
        for target in ("", "within 3 sd")
    ]
    assert set(table["family_size"]) == {8}
    alone, _ = compare_models([row for row in rows if row.metric.label == "t"], [], 42)
    assert len(alone) == 4  # without the metric that has them first, they stay


def make_gap(label: str, **settings: Any) -> PluginSpec:
    plugin = PerplexityGap(**settings)
    return PluginSpec("metrics", "perplexity_gap", label, plugin, vars(plugin), ())
