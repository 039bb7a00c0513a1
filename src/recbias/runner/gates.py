"""The checks of a spec on the values of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from recbias.config.checks import Check
from recbias.config.experiment import Experiment, PluginSpec
from recbias.core import measures
from recbias.core.measures import Bounds
from recbias.runner.results import (
    FailedValue,
    ModelMeasurement,
    build_metrics_table,
    identify_groups,
)
from recbias.runner.significance import collect_estimates
from recbias.statistics.compare import ESTIMATE_KEYS, SystemEstimates, compare_two

Verdict: TypeAlias = Literal["pass", "fail", "undecided"]
"""The result of a check."""

Interval: TypeAlias = tuple[float, float]
"""The lower and the upper end; NaN if a value has no interval."""


def decide(value: float, interval: Interval, limits: Interval) -> Verdict:
    """Return the verdict on a value with its 95% interval.

        pass       if the interval lies within the limits:  L ≤ low and high ≤ U
        fail       if it lies outside:                       high < L or low > U
        undecided  if it contains a limit, or the value is undefined

    A value without an interval (NaN) is decided by itself: low = high = value. For the difference
    from a baseline and the limit -margin this is the test of non-inferiority at level 2.5%.

    >>> limits = (-math.inf, 0.05)
    >>> decide(0.03, (0.01, 0.05), limits), decide(0.03, (0.01, 0.06), limits)
    ('pass', 'undecided')
    >>> decide(0.08, (0.06, 0.1), limits), decide(0.06, (math.nan, math.nan), limits)
    ('fail', 'fail')

    Source:
        Piaggio et al., "Reporting of noninferiority and equivalence randomized trials", JAMA 2012.
    """
    if math.isnan(value):
        return "undecided"
    low, high = (value, value) if any(map(math.isnan, interval)) else interval
    if limits[0] <= low and high <= limits[1]:
        return "pass"
    return "fail" if high < limits[0] or low > limits[1] else "undecided"


CheckRow: TypeAlias = dict[str, Any]
"""A value with its limit and verdict, as in ``report.json``."""


def judge_checks(
    experiment: Experiment,
    measurements: Sequence[ModelMeasurement],
    failed: Sequence[FailedValue],
    groups: Sequence[ModelMeasurement],
) -> list[CheckRow]:
    """Return the rows of the checks of a spec for the manifest, which has null for NaN."""
    if not experiment.checks:
        return []
    rows = evaluate_checks(experiment.checks, measurements, failed, groups)
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def evaluate_checks(
    checks: Sequence[Check],
    measurements: Sequence[ModelMeasurement],
    failed: Sequence[FailedValue] = (),
    groups: Sequence[ModelMeasurement] = (),
) -> list[CheckRow]:
    """Return the verdict of each check on each of its models, groups and targets.

    With several seeds or folds the mean over them is checked, with several datasets each of them.
    A model without a value has one row, whose value is NaN and which is undecided, also on a
    dataset where its stage failed; then ``basis`` is ``failure``. A value without an interval of
    one of the ``groups`` with a single unit, or of a gap with one, is undecided too, and ``basis``
    is ``single``. ``value`` is the difference from the baseline if the check has one, with its
    paired interval.
    """
    metrics = build_metrics_table(measurements)
    for name in ("seed", "fold"):
        if (metrics[name] == measures.ALL).any():
            metrics = metrics[metrics[name] == measures.ALL]
    metrics = metrics[
        ~metrics["dataset"].isin([measures.ALL, measures.POOLED])
        & (metrics["group"] != measures.SERVED)
    ]
    defined = [row for row in measurements if not row.missing]
    estimates = {_make_key(estimate.keys): estimate for estimate in collect_estimates(defined)}
    bounds = {row.metric.label: row.bounds for row in measurements}
    judge = _Judge(metrics, estimates, bounds, failed, groups)
    return [row for check in checks for row in judge.evaluate(check)]


@dataclass(frozen=True, eq=False)
class _Judge:
    """Decides checks by the values of a run.

    Args:
        metrics: The rows of ``metrics.csv`` that are checked.
        estimates: The values of all models by ``ESTIMATE_KEYS``.
        bounds: Those of the values of each metric.
    """

    metrics: pd.DataFrame
    estimates: Mapping[tuple[str, ...], SystemEstimates]
    bounds: Mapping[str, Bounds]
    failed: Sequence[FailedValue]
    groups: Sequence[ModelMeasurement]

    def evaluate(self, check: Check) -> Iterator[CheckRow]:
        """Yield the verdicts of a check."""
        metric, singles = check.metric, self._find_singles(check.metric)
        k = self.metrics["k"]
        has_cutoff = k.isna() if metric.cutoff is None else k == metric.cutoff
        metrics = self.metrics[(self.metrics["metric"] == metric.label) & has_cutoff]
        stopped = [keys[:2] for keys in self.failed if keys[2:] == (metric.label, metric.cutoff)]
        is_of_dataset = {*metrics["model"], *(model for _, model in stopped)} == {measures.DATASET}
        for model in (measures.DATASET,) if is_of_dataset else check.models:
            rows = metrics[metrics["model"] == model].to_dict("records")
            undefined: dict[Any, Any] = {"model": model, "metric": metric.label}
            lacking = {dataset: None for dataset, name in stopped if name == model}
            measured = {row["dataset"] for row in rows}
            rows += [undefined | {"dataset": name} for name in lacking if name not in measured]
            for row in rows or [undefined]:
                value, interval = self._measure(check, row, metrics)
                sides = {(row.get("dataset"), name) for name in (model, check.baseline)}
                basis = "value" if any(map(math.isnan, interval)) else "interval"
                if math.isnan(value):
                    basis = "undefined" if sides.isdisjoint(stopped) else "failure"
                elif basis == "value" and any(
                    row["group"] in {"", group} and sides >= {side} and row["target"] == target
                    for side, group, target in singles
                ):
                    basis = "single"
                yield _build_row(check, row, value, interval, basis)

    def _find_singles(self, metric: PluginSpec) -> set[tuple[tuple[str, str], str, str]]:
        """Return dataset, model, group and target of the groups of a metric with a single unit."""
        if metric.grouping is None or metric.grouping.min_group > 1:
            return set()
        return {
            ((row.dataset, row.model), row.measurement.group, row.measurement.target)
            for row in self.groups
            if row.measurement.n == 1 and identify_groups(row.metric) == identify_groups(metric)
        }

    def _measure(
        self, check: Check, row: Mapping[Any, Any], metrics: pd.DataFrame
    ) -> tuple[float, Interval]:
        """Return the value of a row, or its difference from the baseline, with the interval."""
        undefined = math.nan, math.nan
        if "value" not in row:
            return math.nan, undefined
        if check.baseline is None:
            return float(row["value"]), (float(row["ci_low"]), float(row["ci_high"]))
        estimate, pair = self.estimates.get(_make_key(row)), (row["model"], check.baseline)
        if estimate is not None and estimate.comparable and {*pair} <= {*estimate.systems}:
            test = compare_two(estimate, *pair)
            low, high = self.bounds[row["metric"]]
            most = max(high - low, abs(test["difference"]))  # as in significance.csv
            return test["difference"], (max(test["ci_low"], -most), min(test["ci_high"], most))
        others = metrics[metrics["model"] == check.baseline].to_dict("records")
        same = [other["value"] for other in others if _make_key(other) == _make_key(row)]
        return float(row["value"]) - float(same[0] if same else math.nan), undefined


def _build_row(
    check: Check, row: Mapping[Any, Any], value: float, interval: Interval, basis: str
) -> CheckRow:
    verdict = "undecided" if basis == "single" else decide(value, interval, check.spec.limits)
    keys = {
        name: str(row.get(name, ""))
        for name in (*measures.FIT_COLUMNS, *measures.METRIC_KEY_COLUMNS)
    }
    return {
        **keys,
        "k": check.metric.cutoff,
        "baseline": check.baseline or "",
        "value": value,
        "ci_low": interval[0],
        "ci_high": interval[1],
        "limit": check.spec.limit,
        "verdict": verdict,
        "basis": basis,
        "strict": check.spec.strict,
        "failed": verdict == "fail" or (check.spec.strict and verdict == "undecided"),
    }


def _make_key(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple("" if pd.isna(row[name]) else str(row[name]) for name in ESTIMATE_KEYS)
