from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import FloatArray
from recbias.core.measures import METRICS, SIGNIFICANCE
from recbias.runs.power import (
    PowerQuestion,
    PowerTables,
    compute_power_rows,
    count_templates,
    cross_prompts,
    split_label_gap,
)
from recbias.statistics.components import CrossedDesign, compute_sums_of_squares
from recbias.statistics.intervals import (
    compute_power,
    t_interval,
)
from recbias.statistics.paired import PairedT

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
    return PowerTables(values, significance, per_unit, manifest, lambda: None)


def compare_pairs(differences: FloatArray, **changes: Any) -> dict[str, Any]:
    values = np.stack([differences, np.zeros(differences.size)])
    columns = PairedT().pairs(values, np.random.default_rng(0))
    numbers = {name: float(column[0]) for name, column in columns.items()}
    sides = {"a": "A", "b": "B", "test": "paired_t", "between": "models"}
    return {**KEYS, **PLACE, **numbers, **sides, **LEVEL, **changes}


def test_paired_row_reaches_the_power_at_its_detectable_difference() -> None:
    d = np.random.default_rng(1).normal(0.1, 1.0, 40)
    (row,) = compute_power_rows(
        make_tables([compare_pairs(d)]), PowerQuestion(difference=0.2)
    ).to_dict("records")
    assert (row["unit"], row["n"], row["alpha"]) == ("user", 40, 0.025)  # two tests
    std = d.std(ddof=1)
    assert float(compute_power(row["detectable"], std / math.sqrt(40), 39, 0.025)) == (
        pytest.approx(0.8)
    )
    n = row["needed"]
    assert float(compute_power(0.2, std / math.sqrt(n), n - 1, 0.025)) >= 0.8
    assert float(compute_power(0.2, std / math.sqrt(n - 1), n - 2, 0.025)) < 0.8


def test_groups_need_units_in_the_shares_of_the_run() -> None:
    sides = {"a": "g=x", "b": "g=y", "test": "welch_t", "between": "groups", "n": 40.0}
    row = compare_pairs(np.arange(40.0), **sides)
    values = {"value": 0.0, "undefined": 0.0, "ci_low": 0.0, "ci_high": 0.0, "target": ""}
    groups = [
        {**KEYS, **values, "group": "g=x", "n": 10.0, "std": 2.0},
        {**KEYS, **values, "group": "g=y", "n": 30.0, "std": 1.0},
    ]
    (answer,) = compute_power_rows(
        make_tables([row], groups), PowerQuestion(difference=0.5)
    ).to_dict("records")
    n, n_a, n_b = (answer[name] for name in ("needed", "needed_a", "needed_b"))
    assert n == n_a + n_b
    assert n_a / n == pytest.approx(0.25, abs=0.01)
    # about (z + z)^2 (4 / 0.25 + 1 / 0.75) / 0.25 with alpha 0.025: 9.506 * 69.33 = 659
    assert n == pytest.approx(659, rel=0.02)
    parts = np.array([4 / n_a, 1 / n_b])
    df = parts.sum() ** 2 / (parts**2 / np.array([n_a - 1, n_b - 1])).sum()
    assert float(compute_power(0.5, math.sqrt(parts.sum()), df, 0.025)) == pytest.approx(
        0.8, abs=0.002
    )


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


def test_few_units_cannot_be_significant_by_their_signs() -> None:
    row = compare_pairs(np.array([0.1, 0.3, 0.2]), test="sign_flip", df=math.nan)
    (answer,) = compute_power_rows(make_tables([row]), PowerQuestion(difference=0.1)).to_dict(
        "records"
    )
    assert answer["remark"] == "no p-value of 3 users is below 0.25"
    assert math.isnan(answer["detectable"])


def test_a_gap_is_no_wider_than_the_range_of_its_metric() -> None:
    row = compare_pairs(np.array([0.1, 0.3, 0.2])) | {"metric": "gap"}
    tables = make_tables([row])
    metrics = [
        {"metric": "gap", "name": "X", "values": "0 or more", "parameters": {"gap": "difference"}},
        {"metric": "X", "name": "X", "values": "0 to 1", "parameters": {}},
    ]
    known = replace(tables, manifest={**tables.manifest, "metrics": metrics})
    unknown = replace(tables, manifest={**tables.manifest, "metrics": metrics[:1]})
    question = PowerQuestion(difference=5)
    remark = "the difference is larger than the range 0 to 1"
    assert compute_power_rows(known, question)["remark"].tolist() == [remark]
    assert compute_power_rows(unknown, question)["remark"].tolist() == [""]


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
    assert count_templates(ids[:-1], {name.partition(":")[2] for name in ids}) == 0


@pytest.mark.parametrize("form", ["squares", "components"])
def test_label_gap_is_split_between_names_and_templates(form: str) -> None:
    _, values = make_crossed(5)
    labels, names = np.array([0, 0, 0, 1, 1, 1]), np.repeat(np.arange(6), 4)
    design = CrossedDesign.from_values(values, names, np.tile(np.arange(4), 6), labels)
    squares = compute_sums_of_squares(design)[0]
    ms_name, ms_rest = squares[1] / 4, squares[3] / 15
    assert ms_name > ms_rest
    parts = squares
    if form == "components":
        parts = np.array([0.0, (ms_name - ms_rest) / 4, 0.0, ms_rest])
    shares = dict(zip(("label", "name", "template", "rest"), parts / parts.sum(), strict=True))
    means = values.reshape(6, 4).mean(axis=1)
    groups = [
        {"group": f"l={label}", "n": 3.0, "std": means[labels == label].std(ddof=1)}
        for label in (0, 1)
    ]
    by_name, by_template = split_label_gap(
        groups, ("l=0", "l=1"), shares, form=form, n_templates=4
    )
    error, df = by_name.measure_error(np.array(6.0))
    assert (float(error) ** 2, float(df)) == pytest.approx((ms_name / 4 * 2 / 3, 4.0))
    more, _ = by_template.measure_error(np.array(8.0))
    expected = (ms_name - ms_rest) / 4 + ms_rest / 8
    assert float(more) ** 2 == pytest.approx(expected * 2 / 3)


def test_interval_gives_the_standard_error_of_a_bootstrap() -> None:
    low, high = t_interval(0.3, 0.2 * math.sqrt(9), 9)
    row = compare_pairs(np.arange(9.0), test="permutation", between="targets", df=8.0)
    row |= {"ci_low": float(low), "ci_high": float(high), "correction": "none"}
    (answer,) = compute_power_rows(make_tables([row]), PowerQuestion()).to_dict("records")
    assert float(compute_power(answer["detectable"], 0.2, 8, 0.05)) == pytest.approx(0.8)
