from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from recbias.config.plugin_spec import PluginSpec
from recbias.core.arrays import FloatArray
from recbias.core.measurements.columns import METRICS_COLUMNS
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.runner.results.metric_rows import Measured, metrics_table, per_unit_tables


def metric(label: str = "nDCG", k: int | None = 10) -> PluginSpec:
    return PluginSpec("metrics", label, label, None, {"k": k}, ("metrics", 0))


def measured(values: list[float], **where: Any) -> Measured:
    ids = np.array([f"u{each}" for each in range(len(values))], dtype=object)
    found = Measurement.from_units(UnitScores("user", ids, np.array(values)))
    place = {"dataset": "d", "model": "m", "seed": 42, "fold": 1, **where}
    return Measured(**place, metric=metric(), measurement=found)


def test_one_fold_is_one_row_with_the_columns_of_the_contract() -> None:
    table = metrics_table([measured([1.0, 0.0, math.nan])])
    assert tuple(table.columns) == METRICS_COLUMNS
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["value"], row["n"], row["undefined"], row["fold"]) == (0.5, 2, 1, 1)


def test_several_folds_have_a_row_each_and_their_mean() -> None:
    table = metrics_table([measured([1.0, 0.0], fold=1), measured([1.0, 1.0], fold=2)])
    assert table["fold"].tolist() == [1, 2, "all"]
    mean = table.iloc[2]
    # mean of 0.5 and 1.0; sample deviation sqrt(2 * 0.25^2) = 0.353553
    assert mean["value"] == 0.75
    assert mean["std"] == pytest.approx(0.3535534)
    assert (mean["n"], mean["seed"]) == (2, 42)


def test_several_seeds_and_folds_are_averaged_together() -> None:
    places = [(seed, fold) for seed in (1, 2) for fold in (1, 2)]
    rows = [measured([float(seed * fold)], seed=seed, fold=fold) for seed, fold in places]
    table = metrics_table(rows)
    mean = table.iloc[-1]
    assert (mean["seed"], mean["fold"]) == ("all", "all")
    assert mean["value"] == (1 + 2 + 2 + 4) / 4


def test_several_datasets_are_averaged_over_their_own_means() -> None:
    rows = [
        measured([1.0], dataset="a", fold=1),
        measured([0.0], dataset="a", fold=2),
        measured([1.0], dataset="b", fold=1),
        measured([1.0], dataset="b", fold=2),
    ]
    table = metrics_table(rows)
    mean = table[table["dataset"] == "all"].iloc[0]
    assert (mean["value"], mean["fold"]) == (0.75, "all")


def test_an_undefined_fold_is_counted_and_not_zero() -> None:
    table = metrics_table([measured([math.nan], fold=1), measured([1.0], fold=2)])
    mean = table.iloc[2]
    assert (mean["value"], mean["n"], mean["undefined"]) == (1.0, 1, 1)
    assert math.isnan(table.iloc[0]["value"])


def test_nothing_measured_is_an_empty_table() -> None:
    assert tuple(metrics_table([]).columns) == METRICS_COLUMNS


def test_units_are_written_one_row_each() -> None:
    (piece,) = per_unit_tables([measured([0.5, math.nan])])
    table = pa.table(piece).to_pandas()
    assert table["unit_id"].tolist() == ["u0", "u1"]
    assert table["value"].isna().tolist() == [False, True]
    assert list(table.columns) == [
        *("dataset", "model", "seed", "fold", "unit", "unit_id", "metric", "k", "group"),
        *("target", "value"),
    ]


def test_a_figure_without_units_has_no_rows() -> None:
    whole = Measured("d", "m", 42, 1, metric(k=None), Measurement(0.5, 3, 0))
    assert list(per_unit_tables([whole])) == []
    assert pd.isna(metrics_table([whole]).iloc[0]["k"])


@dataclass(frozen=True)
class Share:
    """A metric whose figure is one count over another."""

    def of_counts(self, counts: FloatArray) -> float:
        return float(counts[0] / counts[1])


def test_several_datasets_are_also_pooled_where_counts_add_up() -> None:
    # 1 of 2 and 9 of 10: the mean of the shares is 0.7, of all places together 10 of 12
    share = replace(metric("share"), plugin=Share())
    rows = [
        Measured("a", "m", 42, 1, share, Measurement(0.5, 2, 0, counts=np.array([1.0, 2.0]))),
        Measured("b", "m", 42, 1, share, Measurement(0.9, 10, 1, counts=np.array([9.0, 10.0]))),
    ]
    table = metrics_table(rows).set_index("dataset")
    assert table.index.tolist() == ["a", "b", "all", "pooled"]
    assert table.loc["all", "value"] == pytest.approx(0.7)
    assert table.loc["pooled", "value"] == pytest.approx(10 / 12)
    assert (table.loc["pooled", "n"], table.loc["pooled", "undefined"]) == (12, 1)


def test_a_mean_over_three_datasets_has_an_interval_and_over_two_none() -> None:
    rows = [
        measured([value], dataset=name) for name, value in (("a", 1.0), ("b", 2.0), ("c", 6.0))
    ]
    mean = metrics_table(rows).iloc[-1]
    # mean 3, sd sqrt((4 + 1 + 9) / 2) = 2.645751; t(0.975; 2) = 4.302653: half 6.572407
    assert mean["ci_high"] == pytest.approx(3 + 6.572407, abs=1e-5)
    assert math.isnan(metrics_table(rows[:2]).iloc[-1]["ci_high"])
