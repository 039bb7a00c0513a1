from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recbias.config.plugin_spec import PluginSpec
from recbias.core.errors import UnalignedScores
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.runner.results.metric_rows import Measured
from recbias.runner.results.significance import significance
from recbias.statistics.tests.paired import PairedT

TEST = PluginSpec("tests", "paired_t", "paired_t", PairedT(), {}, ("tests", 0))
METRIC = PluginSpec("metrics", "nDCG", "nDCG", None, {"k": 10}, ("metrics", 0))

COVERAGE = PluginSpec("metrics", "ItemCoverage", "ItemCoverage", None, {"k": 10}, ("metrics", 1))


def measured(model: str, values: list[float], ids: list[str] | None = None, **at: Any) -> Measured:
    names = np.array(ids or [f"u{each}" for each in range(len(values))], dtype=object)
    found = Measurement.from_units(UnitScores("user", names, np.array(values)))
    place = {"dataset": "d", "seed": 42, "fold": 1, **at}
    return Measured(model=model, metric=METRIC, measurement=found, **place)


A, B, C = [0.5, 0.25, 1.0, 0.0], [0.25, 0.25, 0.5, 0.125], [1.0, 1.0, 0.75, 1.0]


def test_all_pairs_of_models_are_compared_on_the_same_units() -> None:
    table = significance([measured("a", A), measured("b", B), measured("c", C)], [TEST], 42)
    pairs = list(zip(table["a"], table["b"], strict=True))
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    expected = stats.ttest_rel(A, B).pvalue
    assert table["p"][0] == pytest.approx(expected, rel=1e-10)
    assert table["p_adjusted"][0] == pytest.approx(min(1.0, 3 * expected), rel=1e-10)
    assert table["family_size"].tolist() == [3, 3, 3]


def test_folds_are_compared_by_themselves_and_on_each_units_mean() -> None:
    rows = [
        measured("a", A, fold=1),
        measured("b", B, fold=1),
        measured("a", C, fold=2),
        measured("b", A, fold=2),
    ]
    table = significance(rows, [TEST], 42)
    assert table["fold"].tolist() == [1, 2, "all"]
    means = [(np.array(A) + np.array(C)) / 2, (np.array(B) + np.array(A)) / 2]
    expected = stats.ttest_rel(*means).pvalue
    assert table["p"][2] == pytest.approx(expected, rel=1e-10)


def test_other_units_are_refused() -> None:
    with pytest.raises(UnalignedScores, match="different units"):
        significance([measured("a", A), measured("b", B, ["w", "x", "y", "z"])], [TEST], 42)


def test_set_level_figures_are_compared_through_their_samples() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(0.5, 0.01, size=999)
    whole = [Measurement(0.5, 10, 0, replicates=samples)]
    whole.append(Measurement(0.3, 10, 0, replicates=samples - 0.2))
    rows = [
        Measured("d", name, 42, 1, METRIC, each) for name, each in zip("ab", whole, strict=True)
    ]
    table = significance(rows, [TEST], 42)
    assert table["test"].tolist() == ["paired_bootstrap"]
    assert table["difference"][0] == pytest.approx(0.2)
    # every sample of the difference is 0.2, but for the last digits: nothing is uncertain
    assert table["p"][0] == pytest.approx(0.0, abs=1e-12)


def test_one_model_has_nothing_to_be_compared_with() -> None:
    table = significance([measured("a", A)], [TEST], 42)
    assert len(table) == 0
    assert "p_adjusted" in table.columns


def test_an_undefined_unit_is_left_out_of_its_pairs_only() -> None:
    holed = [math.nan, *B[1:]]
    table = significance([measured("a", A), measured("b", holed), measured("c", C)], [TEST], 42)
    assert table["n"].tolist() == [3, 4, 3]


def test_several_tests_have_their_rows_and_nothing_twice() -> None:
    from recbias.statistics.tests.paired import Wilcoxon

    wilcoxon = PluginSpec("tests", "wilcoxon", "wilcoxon", Wilcoxon(), {}, ("tests", 1))
    sampled = Measurement(0.5, 10, 0, replicates=np.array([0.4, 0.5, 0.6]))
    rows = [measured("a", A), measured("b", B)]
    rows += [Measured("d", name, 42, 1, COVERAGE, sampled) for name in "ab"]
    table = significance(rows, [TEST, wilcoxon], 42)
    assert table["test"].tolist() == ["paired_t", "paired_bootstrap", "wilcoxon"]
    assert table["n"].tolist() == [4, 10, 4]


def test_without_a_test_the_table_has_its_columns_and_no_row() -> None:
    table = significance([measured("a", A), measured("b", B)], [], 42)
    assert len(table) == 0
    assert "significant" in table.columns
