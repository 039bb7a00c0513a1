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
from recbias.statistics.agreement import kendall_tau
from support.run_folders import SEVEN_MODELS, RunSpec, make_run

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
