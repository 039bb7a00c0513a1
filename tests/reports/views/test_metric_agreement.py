from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from recbias.reports.run import read_run
from recbias.reports.tables import (
    MetricAgreement,
    build_agreement_tables,
    compute_metric_agreement,
)
from recbias.reports.wording import Table
from recbias.statistics.agreement import kendall_tau
from support.run_folders import SEVEN_MODELS, RunSpec, make_run

METRICS = ("log_popularity_difference", "popularity_lift", "gini_difference", "ARP")
NAN = math.nan


def write_values(folder: Path, values: dict[str, list[float]], **world: object) -> Path:
    models = SEVEN_MODELS[: len(next(iter(values.values())))]
    spec = RunSpec(models=models, metrics=tuple(values), users=5, items=20, **world)  # type: ignore[arg-type]
    frame = pd.read_csv(make_run(folder, spec) / "metrics.csv", keep_default_na=False)
    for metric, column in values.items():
        rows = (frame["metric"] == metric) & (frame["dataset"] == "ml-1m")
        frame.loc[rows, "value"] = np.tile(column, rows.sum() // len(column))
    frame.to_csv(folder / "metrics.csv", index=False)
    return folder


def compute(folder: Path, values: dict[str, list[float]]) -> MetricAgreement:
    agreement = compute_metric_agreement(read_run(write_values(folder, values)), "ml-1m")
    assert agreement is not None
    return agreement


def test_models_of_which_a_metric_is_undefined_are_excluded_from_its_pairs_and_counted(
    tmp_path: Path,
) -> None:
    # Without the third model b is 1, 2, 4, 3 where a is 1, 2, 4, 5: of six pairs five agree and
    # one (4 and 3) does not, (5 - 1) / 6. c is a reversed.
    values = {"a": [1.0, 2, 3, 4, 5], "b": [1.0, 2, NAN, 4, 3], "c": [5.0, 4, 3, 2, 1]}
    result = compute(tmp_path, values)
    assert result.get_tau((0, 1)) == pytest.approx(4 / 6)
    assert result.get_tau((0, 2)) == -1.0
    assert (result.agreement.n[0, 1], result.agreement.n[0, 2]) == (4, 5)
    assert dict(result.excluded) == {"b@10": ["ItemKNN"]}
    (table,) = build_agreement_tables(read_run(tmp_path))
    assert [cell.text for cell in table.rows[0]] == ["1 a@10", "", "0.67", "-1.00"]
    assert table.rows[0][2].note == "n 4"
    assert "over 4 to 5 models" in table.notes[0]
    assert table.notes[1:] == (
        "b@10 is undefined or infinite for 1 model, excluded from its pairs: ItemKNN.",
    )


COLUMN = st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(NAN)), min_size=7, max_size=7)


@given(COLUMN, COLUMN)
def test_tau_equals_that_of_scipy_over_the_models_with_both_values(
    a: list[float], b: list[float]
) -> None:
    agreement = kendall_tau(np.column_stack([a, b]))
    both = ~(np.isnan(a) | np.isnan(b))
    expected = NAN
    if both.sum() > 1:
        expected = stats.kendalltau(np.array(a)[both], np.array(b)[both]).statistic
    assert agreement.tau[0, 1] == pytest.approx(expected, nan_ok=True)
    assert agreement.n[0, 1] == both.sum()


def test_infinite_values_are_excluded(tmp_path: Path) -> None:
    values = {"a": [1.0, 2, 3, 4, math.inf], "b": [1.0, 2, 3, 4, 5], "c": [1.0, 2, 3, 5, 4]}
    result = compute(tmp_path, values)
    assert result.agreement.n[0, 1] == 4
    assert dict(result.excluded) == {"a@10": ["PureSVD"]}


def test_a_metric_with_too_few_models_has_no_row(tmp_path: Path) -> None:
    rising, thin = [1.0, 2, 3, 4], [1.0, 2, 3, NAN]
    run = read_run(write_values(tmp_path, {"a": rising, "b": rising, "c": rising, "d": thin}))
    (table,) = build_agreement_tables(run)
    assert [row[0].text for row in table.rows] == ["1 a@10", "2 b@10", "3 c@10"]


@pytest.mark.parametrize("folds", [1, 2])
def test_means_over_folds_are_compared(tmp_path: Path, folds: int) -> None:
    values = {metric: [1.0, 2, 3, 4] for metric in METRICS}
    run = read_run(write_values(tmp_path, values, folds=folds))
    (table,) = build_agreement_tables(run)
    assert {cell.value for row in table.rows for cell in row[1:] if cell.text} == {1.0}


def test_each_dataset_has_a_table(tmp_path: Path) -> None:
    world = RunSpec(metrics=METRICS, datasets=("ml-1m", "other"), users=5, items=20)
    tables: list[Table] = build_agreement_tables(read_run(make_run(tmp_path, world)))
    titles = [table.title for table in tables]
    assert titles == ["Agreement of the metrics on ml-1m", "Agreement of the metrics on other"]
