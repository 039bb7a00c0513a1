"""The rows of ``metrics.csv``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.arrays import FloatArray
from recbias.core.docstrings import read_section
from recbias.core.measurements import ranges
from recbias.core.measurements.columns import (
    ALL,
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    METRICS_COLUMNS,
    POOLED,
    VALUE_COLUMNS,
)
from recbias.core.measurements.scores import Measurement
from recbias.core.protocols import Pools
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.pooling import estimate_interval, sum_counts, widen_interval
from recbias.statistics.gap_definitions import DEFINITIONS

MIN_DATASETS = 3
"""The mean of fewer datasets has no interval."""

FailedValue: TypeAlias = tuple[str, str, str, int | None]
"""The dataset, model, metric and cutoff of a value whose stage failed."""


@dataclass(frozen=True, eq=False)
class ModelMeasurement:
    """One value of a metric for a fitted model; folds count from 1, ``all`` for all of them.

    Args:
        missing: The outputs that the metric needs and the model does not provide; then the value
            is undefined.
        bounds: Those of the values, and of the intervals of their means.
    """

    dataset: str
    model: str
    seed: int | str
    fold: int | str
    metric: PluginSpec
    measurement: Measurement
    missing: str = ""
    bounds: ranges.Bounds = ranges.UNBOUNDED

    @property
    def metric_keys(self) -> dict[str, Any]:
        """Metric, k, group and target."""
        group, target = self.measurement.group, self.measurement.target
        keys = (self.metric.label, self.metric.cutoff, group, target)
        return dict(zip(METRIC_KEY_COLUMNS, keys, strict=True))

    def row(self) -> dict[str, Any]:
        """Return its row of ``metrics.csv``."""
        fit_keys = {name: vars(self)[name] for name in FIT_COLUMNS}
        values = {name: vars(self.measurement)[name] for name in VALUE_COLUMNS}
        return {**fit_keys, **self.metric_keys, **values}


def make_fit_keys(model_plan: ModelPlan) -> dict[str, Any]:
    """Return the dataset, model, seed and fold of a model plan."""
    keys = model_plan.data_context.keys
    values = keys.dataset, model_plan.model.label, keys.seed, keys.fold
    return dict(zip(FIT_COLUMNS, values, strict=True))


def make_measurement(
    fit_keys: tuple[str, str, int | str, int | str], metric: PluginSpec, value: Measurement
) -> ModelMeasurement:
    """Return a value of a model, whose interval is within the range of the metric."""
    gap = DEFINITIONS.get(metric.grouping.gap) if metric.grouping else None
    text = gap.values if gap else ""
    bounds = ranges.read_bounds(text or read_section(type(metric.plugin), "Range"))
    return ModelMeasurement(*fit_keys, metric, ranges.limit_interval(value, bounds), bounds=bounds)


def collect_measurements(plan: Plan, executor: Executor) -> list[ModelMeasurement]:
    """Return all measurements of a run in the order of the plan; a metric without evidence too."""
    measurements = []
    for model_plan in plan.model_plans:
        keys = model_plan.data_context.keys
        fit_keys = (keys.dataset, model_plan.model.label, keys.seed or 0, keys.fold or 0)
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            values = executor.value(stage) if executor.has_succeeded(stage) else ()
            measurements += [make_measurement(fit_keys, metric, value) for value in values]
        measurements += [
            ModelMeasurement(*fit_keys, metric, Measurement(math.nan, n=0, undefined=1), missing)
            for metric, model, missing in plan.undefined
            if model.label == model_plan.model.label
        ]
        executor.forget(model_plan.measures)
    return measurements


def list_failed_values(plan: Plan, executor: Executor) -> list[FailedValue]:
    """Return each value of which a stage failed for a seed or fold, in the order of the plan."""
    keys = (
        (row.data_context.keys.dataset, row.model.label, metric.label, metric.cutoff)
        for row in plan.model_plans
        for metric, stage in zip(row.metrics, row.measures, strict=True)
        if not executor.has_succeeded(stage)
    )
    return [*dict.fromkeys(keys)]


def build_metrics_table(measurements: Sequence[ModelMeasurement]) -> pd.DataFrame:
    """Return ``metrics.csv``: one row per value, then the means over folds, seeds and datasets."""
    rows = _build_table([measurement.row() for measurement in measurements])
    means = []
    if averaged := [name for name in ("seed", "fold") if len(set(rows[name])) > 1]:
        means.append(_add_intervals(_average_over(rows, averaged), measurements))
    if len(set(rows["dataset"])) > 1:
        over_datasets = _average_over(means[0] if means else rows, ["dataset"])
        means.append(_limit_intervals(over_datasets, measurements))
    means += _pool_datasets(measurements)
    return pd.concat([rows.astype({"seed": object, "fold": object}), *means]) if means else rows


def _build_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(METRICS_COLUMNS)).astype({"k": "Int64"})


def _average_over(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the mean and spread of each value over some columns.

    A mean over three or more datasets has the t interval that treats them as a sample. A mean
    over folds and seeds has none here: they share their data, see ``_add_intervals``.
    """
    keys = [name for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS) if name not in columns]
    means = []
    for key, group in rows.groupby(keys, sort=False, dropna=False):
        summary = Measurement.from_values(group["value"].to_numpy(dtype=np.float64))
        mean = dict(zip(keys, key, strict=True)) | dict.fromkeys(columns, ALL)
        mean |= {name: vars(summary)[name] for name in VALUE_COLUMNS}
        if "dataset" not in columns or summary.n < MIN_DATASETS:
            mean |= {"ci_low": math.nan, "ci_high": math.nan}
        means.append(mean)
    return _build_table(means)


def _limit_intervals(
    means: pd.DataFrame, measurements: Sequence[ModelMeasurement]
) -> pd.DataFrame:
    """Return means over datasets, whose intervals are within the ranges of the metrics."""
    bounds = {row.metric.label: row.bounds for row in measurements}
    columns = (means[name].astype(float) for name in ("value", "n", "ci_low", "ci_high"))
    limited = [
        ranges.limit_ends(
            ranges.widen_ends((low, high), bounds[metric], value, int(n)), bounds[metric], value
        )
        for metric, value, n, low, high in zip(means["metric"], *columns, strict=True)
    ]
    lows, highs = zip(*limited, strict=True)
    return means.assign(ci_low=list(lows), ci_high=list(highs))


def _add_intervals(means: pd.DataFrame, measurements: Sequence[ModelMeasurement]) -> pd.DataFrame:
    """Return means over folds and seeds with the intervals of the units' means."""
    averaged: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    for row in measurements:
        averaged[row.dataset, row.model, *row.metric_keys.values()].append(row)
    intervals = []
    for rows, mean in zip(averaged.values(), means["value"].astype(float), strict=True):
        folds, bounds = [row.measurement for row in rows], rows[0].bounds
        ends = widen_interval(estimate_interval(folds, mean), folds, bounds, mean)
        intervals.append(ranges.limit_ends(ends, bounds, mean))
    lows, highs = zip(*intervals, strict=True)
    return means.assign(ci_low=list(lows), ci_high=list(highs))


def _pool_datasets(measurements: Sequence[ModelMeasurement]) -> list[pd.DataFrame]:
    """Return the values of all datasets pooled, for metrics whose counts can be added."""
    if len({row.dataset for row in measurements}) < 2:
        return []
    pooled: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    group_counts: dict[tuple[Any, ...], dict[str, FloatArray | None]] = defaultdict(dict)
    for row in measurements:
        if row.measurement.counts is not None:
            *group_keys, target = (row.model, row.seed, row.fold, *row.metric_keys.values())
            pooled[*group_keys, target].append(row)
            group_counts[*group_keys,][row.dataset] = row.measurement.counts
    rows = []
    for keys, datasets in pooled.items():
        template = datasets[0]
        if isinstance(metric := template.metric.plugin, Pools):
            counts = {row.dataset: row.measurement.counts for row in datasets}
            measurement = Measurement(
                metric.of_counts(sum_counts(counts, group_counts[keys[:-1]])),
                n=sum(row.measurement.n for row in datasets),
                undefined=sum(row.measurement.undefined for row in datasets),
            )
            together = replace(template, dataset=POOLED, measurement=measurement)
            rows.append(together.row() | template.metric_keys)
    return [_build_table(rows)] if rows else []
