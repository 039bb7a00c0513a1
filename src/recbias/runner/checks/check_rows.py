"""The checks of a spec on the values of a run: one row for each check, model and value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from recbias.config.checks import Check
from recbias.config.experiment import Experiment
from recbias.core.measurements.columns import (
    ALL,
    DATASET,
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    POOLED,
)
from recbias.formats import manifest
from recbias.runner.checks.junit import render_junit
from recbias.runner.checks.verdicts import decide, has_no_interval
from recbias.runner.results.metric_rows import FailedValue, ModelMeasurement, build_metrics_table
from recbias.runner.results.significance import collect_estimates
from recbias.statistics.compare import compare_two
from recbias.statistics.compared_estimates import ESTIMATE_KEYS, SystemEstimates

CheckRow: TypeAlias = dict[str, Any]
"""A value with its limit and verdict, as in ``report.json``."""

_Estimates: TypeAlias = Mapping[tuple[str, ...], SystemEstimates]


def write_checks(
    folder: Path,
    experiment: Experiment,
    measurements: Sequence[ModelMeasurement],
    failed: Sequence[FailedValue],
) -> list[manifest.Check]:
    """Write ``checks.xml`` if the spec has checks, and return their rows for the manifest."""
    if not experiment.checks:
        return []
    rows = evaluate_checks(experiment.checks, measurements, failed)
    (folder / "checks.xml").write_bytes(render_junit(experiment.name, rows))
    return [
        manifest.Check(**{name: _to_json(value) for name, value in row.items()}) for row in rows
    ]


def evaluate_checks(
    checks: Sequence[Check],
    measurements: Sequence[ModelMeasurement],
    failed: Sequence[FailedValue] = (),
) -> list[CheckRow]:
    """Return the verdict of each check on each of its models, groups and targets.

    With several seeds or folds the mean over them is checked, with several datasets each of them.
    A model without a value has one row, whose value is NaN and which is undecided, also on a
    dataset where its stage failed; then ``basis`` is ``failure``. ``value`` is the difference from
    the baseline if the check has one, with its paired interval.
    """
    metrics = _select_means(build_metrics_table(measurements))
    metrics = metrics[~metrics["dataset"].isin([ALL, POOLED])]
    defined = [row for row in measurements if not row.missing]
    estimates = {
        _make_key(estimate.keys, ESTIMATE_KEYS): estimate
        for estimate in collect_estimates(defined)
    }
    return [row for check in checks for row in _evaluate(check, metrics, estimates, failed)]


def _select_means(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds and folds, or all rows if there is one of each."""
    for name in ("seed", "fold"):
        if (metrics[name] == ALL).any():
            metrics = metrics[metrics[name] == ALL]
    return metrics


def _evaluate(
    check: Check, metrics: pd.DataFrame, estimates: _Estimates, failed: Sequence[FailedValue]
) -> Iterator[CheckRow]:
    metric = check.metric
    has_cutoff = metrics["k"].isna() if metric.cutoff is None else metrics["k"] == metric.cutoff
    metrics = metrics[(metrics["metric"] == metric.label) & has_cutoff]
    stopped = [keys[:2] for keys in failed if keys[2:] == (metric.label, metric.cutoff)]
    is_of_dataset = {*metrics["model"], *(model for _, model in stopped)} == {DATASET}
    for model in (DATASET,) if is_of_dataset else check.models:
        rows = metrics[metrics["model"] == model].to_dict("records")
        undefined: dict[Any, Any] = {"model": model, "metric": metric.label}
        lacking = [dataset for dataset, name in stopped if name == model]
        measured = {row["dataset"] for row in rows}
        rows += [undefined | {"dataset": name} for name in lacking if name not in measured]
        for row in rows or [undefined]:
            value, interval = _measure(check, row, metrics, estimates)
            sides = {(row.get("dataset"), name) for name in (model, check.baseline)}
            has_failed = math.isnan(value) and not sides.isdisjoint(stopped)
            yield _build_row(check, row, value, interval, has_failed=has_failed)


def _measure(
    check: Check, row: Mapping[Any, Any], metrics: pd.DataFrame, estimates: _Estimates
) -> tuple[float, tuple[float, float]]:
    """Return the value of a row, or its difference from the baseline, with the interval."""
    undefined = math.nan, math.nan
    if "value" not in row:
        return math.nan, undefined
    if check.baseline is None:
        return float(row["value"]), (float(row["ci_low"]), float(row["ci_high"]))
    estimate, systems = (
        estimates.get(_make_key(row, ESTIMATE_KEYS)),
        (row["model"], check.baseline),
    )
    if estimate is not None and estimate.comparable and {*systems} <= {*estimate.systems}:
        test = compare_two(estimate, *systems)
        return test["difference"], (test["ci_low"], test["ci_high"])
    keys = [name for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS) if name not in {"model", "k"}]
    others = metrics[metrics["model"] == check.baseline]
    others = others[(others[keys] == [row[name] for name in keys]).all(axis=1)]
    baseline = float(others["value"].iloc[0]) if len(others) else math.nan
    return float(row["value"]) - baseline, undefined


def _build_row(
    check: Check,
    row: Mapping[Any, Any],
    value: float,
    interval: tuple[float, float],
    *,
    has_failed: bool,
) -> CheckRow:
    verdict = decide(value, interval, check.spec.limits)
    basis = "value" if has_no_interval(interval) else "interval"
    if math.isnan(value):
        basis = "failure" if has_failed else "undefined"
    keys = {name: str(row.get(name, "")) for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS)}
    return {
        **keys,
        "k": check.metric.cutoff,
        "baseline": check.baseline or "",
        "value": value,
        "ci_low": interval[0],
        "ci_high": interval[1],
        "line": check.spec.line,
        "verdict": verdict,
        "basis": basis,
        "strict": check.spec.strict,
        "failed": verdict == "fail" or (check.spec.strict and verdict == "undecided"),
    }


def _make_key(row: Mapping[Any, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if pd.isna(row[name]) else str(row[name]) for name in names)


def _to_json(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
