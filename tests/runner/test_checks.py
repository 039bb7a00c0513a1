from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from recbias.api import read_experiment
from recbias.config.checks import Check, CheckSpec
from recbias.config.specs import Gap, Grouping, PluginSpec
from recbias.core.errors import Faults
from recbias.core.measures import Measurement, UnitScores
from recbias.runner.results import Measurements, ModelMeasurement
from recbias.runner.verdicts import (
    CheckRow,
    Interval,
    Verdict,
    decide,
    evaluate_checks,
)
from support.specs import make_small_spec

METRIC = PluginSpec("metrics", "nDCG", "nDCG", None, {"k": 10}, ("metrics", 0))
OLD, NEW = [0.5, 0.25, 1.0, 0.0], [0.5, 0.5, 1.0, 0.25]


def make_row(model: str, values: list[float], **keys: Any) -> ModelMeasurement:
    ids = np.array([f"u{user}" for user in range(len(values))], dtype=object)
    measurement = Measurement.from_units(UnitScores("user", ids, np.array(values)))
    fit_keys = {"dataset": "d", "seed": 42, "fold": 1, **keys}
    return ModelMeasurement(model=model, metric=METRIC, measurement=measurement, **fit_keys)


def make_set_row(model: str, value: float, replicates: list[float] | None) -> ModelMeasurement:
    """Return a measurement of a whole set of lists, with its bootstrap samples."""
    samples = None if replicates is None else np.array(replicates)
    measurement = Measurement(value, n=4, undefined=0, replicates=samples)
    return ModelMeasurement("d", model, 42, 1, METRIC, measurement)


def check(
    rows: list[ModelMeasurement], models: tuple[str, ...] = ("new",), **settings: Any
) -> list[CheckRow]:
    spec = CheckSpec(metric="nDCG", **settings)
    return evaluate_checks([Check(spec, METRIC, models, spec.baseline)], Measurements(rows))


def test_value_is_checked_with_the_interval_of_its_row() -> None:
    # mean 0.5625, sd 0.3146, t(3) = 3.1824, half width 3.1824 * 0.3146 / 2 = 0.5006
    (row,) = check([make_row("new", NEW)], at_least=0.05)
    assert (row["value"], row["verdict"], row["basis"]) == (0.5625, "pass", "interval")
    assert row["ci_low"] == pytest.approx(0.5625 - 0.5006, abs=1e-4)
    (row,) = check([make_row("new", NEW)], at_least=0.0625)
    assert (row["verdict"], row["failed"]) == ("undecided", False)
    (row,) = check([make_row("new", NEW)], at_least=0.0625, strict=True)
    assert (row["verdict"], row["failed"]) == ("undecided", True)


def test_difference_from_a_baseline_has_its_paired_interval() -> None:
    # differences 0, 0.25, 0, 0.25: mean 0.125, sd 0.1443, half width 3.1824 * 0.0722 = 0.2297
    expected = stats.ttest_rel(NEW, OLD).confidence_interval()
    rows = [make_row("old", OLD), make_row("new", NEW)]
    (row,) = check(rows, not_below="old", margin=0.11)
    assert (row["value"], row["verdict"], row["baseline"]) == (0.125, "pass", "old")
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([expected.low, expected.high])
    assert check(rows, not_below="old", margin=0.1)[0]["verdict"] == "undecided"
    assert check(rows, not_above="old", margin=0.36)[0]["verdict"] == "pass"
    (worse,) = check(rows, ("old",), not_below="new", margin=0.1)
    assert (worse["value"], worse["verdict"]) == (-0.125, "undecided")


@pytest.mark.parametrize(("gap", "group"), [("groups", "g=b"), ("difference", "")])
def test_a_group_of_one_unit_and_its_gap_are_undecided(gap: Gap, group: str) -> None:
    """0.9 of one user is above 0.5, and 0.9 - 0.6 = 0.3, but neither has an interval."""
    metric = replace(METRIC, grouping=Grouping("g", gap))
    of_group = replace(METRIC, grouping=Grouping("g", "groups"))
    (single,) = (
        replace(row, metric=of_group, measurement=replace(row.measurement, group="g=b"))
        for row in [make_row("new", [0.9])]
    )
    value = Measurement(0.3, n=5, undefined=0) if gap == "difference" else single.measurement
    row = replace(single, metric=metric, measurement=value)
    spec = CheckSpec(metric="nDCG", by="g", at_least=0.1)
    (checked,) = evaluate_checks([Check(spec, metric, ("new",))], Measurements([row], [single]))
    assert (checked["group"], checked["verdict"], checked["basis"]) == (
        group,
        "undecided",
        "single",
    )
    large = replace(metric, grouping=Grouping("g", gap, min_group=2))
    measured = Measurements([replace(row, metric=large)])
    (checked,) = evaluate_checks([Check(spec, large, ("new",))], measured)
    assert checked["verdict"] == "pass"


def test_whole_set_metrics_are_compared_by_their_shared_bootstrap_samples() -> None:
    old = make_set_row("old", 0.5, [0.4, 0.5, 0.6])
    new = make_set_row("new", 0.6, [0.6, 0.6, 0.7])
    # differences of the samples 0.2, 0.1, 0.1: sd 0.0577, interval 0.1 ± 1.96 * 0.0577
    (row,) = check([old, new], not_below="old", margin=0.02)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([-0.01316, 0.21316], abs=1e-5)
    assert row["verdict"] == "pass"
    assert check([old, new], not_below="old")[0]["verdict"] == "undecided"


@pytest.mark.parametrize("strict", [False, True])
def test_a_model_without_a_value_is_undecided(strict: bool) -> None:
    undefined = make_row("old", [math.nan, math.nan])
    for rows, models in ([[make_row("x", NEW)], ("new",)], [[undefined], ("old",)]):
        (row,) = check(rows, models, at_least=0.1, strict=strict)  # type: ignore[arg-type]
        assert math.isnan(row["value"])
        assert (row["verdict"], row["basis"], row["failed"]) == ("undecided", "undefined", strict)


def test_a_missing_baseline_is_undecided() -> None:
    (row,) = check([make_row("new", NEW)], not_below="old")
    assert (row["verdict"], row["basis"]) == ("undecided", "undefined")


METRICS = [
    "nDCG",
    "nDCG@3",
    {"name": "HR", "label": "hits"},
    {"name": "nDCG", "by": "gender & age < 25"},
    {"name": "MRR", "by": "gender", "gap": "ratio", "label": "evenness"},
    {"name": "APLT", "head": 0.5},
]


def resolve(**check: Any) -> Check:
    spec = make_small_spec(metrics=METRICS, checks=[check])
    (resolved,) = read_experiment(spec).checks
    return resolved


@pytest.mark.parametrize(
    ("check", "label", "k"),
    [
        ({"metric": "ndcg"}, "nDCG", 5),  # the cutoff of the spec
        ({"metric": "nDCG@3"}, "nDCG", 3),
        ({"metric": "hits"}, "hits", 5),
        ({"metric": "HR@5"}, "hits", 5),
        ({"metric": "APLT"}, "APLT(head=0.5)", 5),
        ({"metric": "APLT(head=0.5)@5"}, "APLT(head=0.5)", 5),
        ({"metric": "nDCG", "by": "gender&age < 25"}, "nDCG(by=gender & age < 25)", 5),
        (
            {"metric": "nDCG", "by": "gender & age < 25", "gap": "difference"},
            "nDCG(by=gender & age < 25, gap=difference)",
            5,
        ),
        (
            {"metric": "nDCG(by=gender & age < 25, gap=std)"},
            "nDCG(by=gender & age < 25, gap=std)",
            5,
        ),
        ({"metric": "evenness"}, "evenness", 5),
        ({"metric": "MRR", "by": "gender", "gap": "ratio"}, "evenness", 5),
    ],
)
def test_a_check_names_its_metric_as_the_reports_do(
    check: dict[str, Any], label: str, k: int
) -> None:
    metric = resolve(**check, at_most=1).metric
    assert (metric.label, metric.cutoff) == (label, k)


UNKNOWN = (math.nan, math.nan)


@pytest.mark.parametrize(
    ("value", "interval", "limits", "verdict"),
    [
        (0.03, (0.01, 0.05), (-math.inf, 0.05), "pass"),  # the end at the line passes
        (0.04, (0.01, 0.06), (-math.inf, 0.05), "undecided"),
        (0.06, (0.04, 0.08), (-math.inf, 0.05), "undecided"),  # straddles from the other side
        (0.08, (0.06, 0.10), (-math.inf, 0.05), "fail"),
        (0.60, (0.55, 0.65), (0.5, math.inf), "pass"),
        (0.52, (0.45, 0.59), (0.5, math.inf), "undecided"),
        (0.40, (0.35, 0.45), (0.5, math.inf), "fail"),
        (0.10, (0.00, 0.20), (-0.2, 0.2), "pass"),
        (0.00, (-0.30, 0.30), (-0.2, 0.2), "undecided"),  # wider than both lines
        (-0.40, (-0.50, -0.30), (-0.2, 0.2), "fail"),
        (0.05, UNKNOWN, (-math.inf, 0.05), "pass"),
        (0.06, UNKNOWN, (-math.inf, 0.05), "fail"),
        (math.nan, UNKNOWN, (-math.inf, 0.05), "undecided"),
        (math.nan, (0.0, 0.0), (-math.inf, 0.05), "undecided"),
    ],
)
def test_verdict_is_that_of_the_interval_or_else_of_the_value(
    value: float, interval: Interval, limits: Interval, verdict: Verdict
) -> None:
    assert decide(value, interval, limits) == verdict


@pytest.mark.parametrize(
    ("check", "where", "text"),
    [
        (
            {"metric": "hits", "not_below": "MostPop", "models": ["ItemKNN", "mostpop"]},
            "models[1]",
            "MostPop is the model that the others are compared with",
        ),
        ({"metric": "Gini", "at_most": 1}, "metric", "Gini is not among the metrics"),
        ({"metric": "hits", "not_below": "EASY"}, "not_below", "'EASY'"),
    ],
)
def test_a_faulty_check_is_refused_at_its_place(
    check: dict[str, Any], where: str, text: str
) -> None:
    with pytest.raises(Faults) as caught:
        resolve(**check)
    lines = "\n".join(caught.value.lines())
    assert f"checks[0]{'.' if where else ''}{where}" in lines
    assert text in lines


def test_all_models_are_checked_but_the_baselines() -> None:
    assert resolve(metric="hits", at_most=1).models == ("ItemKNN",)
    assert resolve(metric="hits", at_most=1, models=["MostPop"]).models == ("MostPop",)
    check = resolve(metric="hits", not_below="mostpop", margin=0.5)
    assert (check.models, check.baseline) == (("ItemKNN",), "MostPop")
    assert check.spec.limit == "not below MostPop - 0.5"
    assert resolve(metric="hits", at_most=1, models=["itemknn"]).models == ("ItemKNN",)
