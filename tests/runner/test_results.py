from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from recbias.config.specs import Grouping, PluginSpec
from recbias.core.dataset import FloatArray
from recbias.core.measures import Measurement, UnitScores
from recbias.metrics.accuracy import HitRate
from recbias.metrics.popularity import PopREO
from recbias.runner.results import (
    ModelMeasurement,
    _make_measurement,
    build_metrics_table,
    estimate_interval,
    pool_summaries,
    pool_units,
)


def make_metric(label: str = "nDCG", k: int | None = 10) -> PluginSpec:
    return PluginSpec("metrics", label, label, None, {"k": k}, ("metrics", 0))


def make_row(values: list[float], **keys: Any) -> ModelMeasurement:
    ids = np.array([f"u{user}" for user in range(len(values))], dtype=object)
    measurement = Measurement.from_units(UnitScores("user", ids, np.array(values)))
    fit_keys = {"dataset": "d", "model": "m", "seed": 42, "fold": 1, **keys}
    return ModelMeasurement(**fit_keys, metric=make_metric(), measurement=measurement)


def test_folds_have_one_row_each_and_a_mean() -> None:
    table = build_metrics_table([make_row([1.0, 0.0], fold=1), make_row([1.0, 1.0], fold=2)])
    assert table["fold"].tolist() == [1, 2, "all"]
    mean = table.iloc[2]
    # mean of 0.5 and 1.0; sample deviation sqrt(2 * 0.25^2) = 0.353553
    assert mean["value"] == 0.75
    assert mean["std"] == pytest.approx(0.3535534)
    assert (mean["n"], mean["seed"]) == (2, 42)


@dataclass(frozen=True)
class Share:
    """A metric that divides two counts."""

    def of_counts(self, counts: FloatArray) -> float:
        return float(counts[0] / counts[1])


def test_metrics_with_counts_are_also_pooled_over_datasets() -> None:
    # 1 of 2 and 9 of 10: the mean of the shares is 0.7, the pooled share 10 of 12
    share = replace(make_metric("share"), plugin=Share())
    rows = [
        ModelMeasurement(
            "a", "m", 42, 1, share, Measurement(0.5, 2, 0, counts=np.array([1.0, 2.0]))
        ),
        ModelMeasurement(
            "b", "m", 42, 1, share, Measurement(0.9, 10, 1, counts=np.array([9.0, 10.0]))
        ),
    ]
    table = build_metrics_table(rows).set_index("dataset")
    assert table.index.tolist() == ["a", "b", "all", "pooled"]
    assert table.loc["all", "value"] == pytest.approx(0.7)
    assert table.loc["pooled", "value"] == pytest.approx(10 / 12)
    assert (table.loc["pooled", "n"], table.loc["pooled", "undefined"]) == (12, 1)


def test_a_mean_over_datasets_has_an_interval_from_three_on() -> None:
    rows = [
        make_row([value], dataset=name) for name, value in (("a", 1.0), ("b", 2.0), ("c", 6.0))
    ]
    mean = build_metrics_table(rows).iloc[-1]
    # mean 3, sd sqrt((4 + 1 + 9) / 2) = 2.645751; t(0.975; 2) = 4.302653: half 6.572407
    assert mean["ci_high"] == pytest.approx(3 + 6.572407, abs=1e-5)
    assert math.isnan(build_metrics_table(rows[:2]).iloc[-1]["ci_high"])


def test_equal_means_of_units_over_folds_have_the_interval_of_equal_values() -> None:
    folds = ([1.0, 0.0, 0.5], [0.0, 1.0, 0.5])  # the mean of each of the three users is 0.5
    rows = [
        replace(make_row(values, fold=fold), bounds=(0.0, 1.0))
        for fold, values in enumerate(folds, start=1)
    ]
    mean = build_metrics_table(rows).iloc[-1]
    width = 0.5 * (1 - 0.025 ** (1 / 3))
    assert (mean["ci_low"], mean["ci_high"]) == pytest.approx((0.5 - width, 0.5 + width))


def measure(values: list[float], ids: str = "abc") -> Measurement:
    return Measurement.from_units(
        UnitScores("user", np.array(list(ids), object), np.array(values))
    )


def test_the_interval_over_folds_is_that_of_the_users_means() -> None:
    # users' means 0.5, 0.5, 0.5 over two folds: only the folds vary
    low, high = estimate_interval([measure([1.0, 0.0, 0.5]), measure([0.0, 1.0, 0.5])], 0.5)
    assert (low, high) == (0.5, 0.5)
    # users' means 0, 0.5, 1: sd 0.5, se 0.288675, t(2) 4.302653
    low, high = estimate_interval([measure([0.0, 0.5, 1.0]), measure([0.0, 0.5, 1.0])], 0.5)
    assert high - 0.5 == pytest.approx(4.302653 * 0.288675, abs=1e-5)
    assert 0.5 - low == pytest.approx(high - 0.5)


def test_disjoint_samples_have_the_interval_of_their_units_together() -> None:
    folds = [measure([0.0, 0.5, 1.0]), measure([0.5, 1.0, 1.5], "def")]
    # means 0.5 and 1; six values around 0.75: squares 0.5625, 0.0625, 0.0625, 0.0625, 0.0625,
    # 0.5625 sum to 1.375, variance 0.275, se sqrt(0.275 / 6) = 0.214087, t(5) 2.570582
    low, high = estimate_interval(folds, 0.75)
    assert (low, high) == pytest.approx((0.75 - 0.550329, 0.75 + 0.550329), abs=1e-5)


def test_a_summary_of_groups_of_items_is_that_of_their_means() -> None:
    # head and tail 0.5 and 0.25, then 0.25 and 0.5: 1/3 in each fold, and equal means. On two
    # bootstrap samples the means are 0.5 and 0.25, then 0.25 and 0.5
    metric = replace(make_metric("PopREO"), plugin=PopREO())
    head, tail = np.array([[0.5, 0.5, 0.25], [0.25, 0.5, 0.25]]), np.array([[0.25, 0.25, 0.5]] * 2)
    tail[1, 0] = 0.5
    rows = [
        ModelMeasurement(
            *("d", "m", 42, fold, metric),
            Measurement(1 / 3, 9, 0, ci_low=0.0, parts={"head": one, "tail": other}),
            bounds=(0.0, 1.0),
        )
        for fold, one, other in zip((1, 2), head, tail, strict=True)
    ]
    (pooled,) = pool_summaries(rows, {"fold": "all"})
    assert (pooled.fold, pooled.measurement.value) == ("all", 0.0)
    assert pooled.measurement.replicates == pytest.approx([1 / 3, -1 / 3])
    mean = build_metrics_table([*rows, pooled]).iloc[-1]
    assert (mean["value"], mean["std"], mean["n"]) == (0.0, 0.0, 2)


def pool_values(folds: list[Measurement]) -> FloatArray:
    pooled = pool_units(folds)
    assert pooled is not None
    return pooled.values


def test_users_in_some_folds_have_the_interval_of_the_mean_over_folds() -> None:
    # a and b in fold 1 (0 and 1), only b in fold 2 (0): m = (0.5 + 0) / 2 = 0.25
    # a: 0.25 - 0.25/2 = 0.125; b: 0.25 + 0.75/2 - 0.25 = 0.375; se 0.125, t(1) 12.706205
    folds = [measure([0.0, 1.0], "ab"), measure([math.nan, 0.0], "ab")]
    assert pool_values(folds) == pytest.approx([0.125, 0.375])
    assert estimate_interval(folds, 0.25)[1] == pytest.approx(0.25 + 12.706205 * 0.125)
    assert pool_values([folds[0], measure([0.0], "b")]) == pytest.approx([0.125, 0.375])


@pytest.mark.parametrize(("gap", "most"), [("difference", 1.0), ("std", math.sqrt(0.5))])
def test_the_interval_of_a_gap_ends_where_the_metric_does(gap: Any, most: float) -> None:
    # Welch's interval of groups of two shares is wide: 0 to 5.7 for a gap that is at most 1
    metric = replace(make_metric("HR"), plugin=HitRate(), grouping=Grouping("g", gap))
    value = Measurement(0.5, 40, 0, ci_low=0.0, ci_high=5.6961, own_interval=True)
    row = _make_measurement({"dataset": "d", "model": "m", "seed": 42, "fold": 1}, metric, value)
    assert (row.measurement.ci_low, row.measurement.ci_high) == pytest.approx((0.0, most))
