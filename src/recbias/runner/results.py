"""The rows of a run's tables, from the measurements of its stages, and what is stored beside them.

A user in five folds is one user, not five: the uncertainty is in the sample of users, so the
interval of a mean over folds is that of one value for each user (``average_folds``), not of the
five values.

Two groups are compared as two models are: by one value for each unit. A test within one seed
answers another question, and its difference may have another sign.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core import measures
from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.docstrings import read_section
from recbias.core.evidence import Responses
from recbias.core.files import derive_seed
from recbias.core.grouping import UncertainGroups, parse_uncertain_label, read_uncertain_groups
from recbias.core.measures import (
    ALL,
    COUNTS,
    DIRECTIONS,
    FIT_COLUMNS,
    IMPORTANCES,
    LEARNING_CURVE,
    LEARNING_CURVES,
    METRIC_KEY_COLUMNS,
    METRICS,
    POOLED,
    ROUNDING,
    TRIALS,
    VALUE_COLUMNS,
    Bounds,
    Contrast,
    Measurement,
    limit_interval,
    widen_ends,
)
from recbias.core.plugins import ChecksFiles, HasBounds, Pools
from recbias.core.queries import Queries
from recbias.runner.execute import Executor
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.plan import ModelPlan, Plan
from recbias.runner.tuning import SearchResult, make_importance_rows, make_trial_rows
from recbias.statistics.bootstrap import compute_sample_interval
from recbias.statistics.groups import (
    DEFINITIONS,
    DIFFERENCES,
    average_folds,
    compare_pooled_groups,
    pool_groups,
)
from recbias.statistics.uncertain import compare_pooled_contributions, measure_contributions


def share_units(measurements: Sequence[Measurement]) -> bool:
    """Return whether all measurements with units have the same units in the same order."""
    units = [measurement.units.ids for measurement in measurements if measurement.units]
    return all(ids is units[0] or np.array_equal(ids, units[0]) for ids in units[1:])


def pool_units(measurements: Sequence[Measurement]) -> FloatArray | None:
    """Return the value of each unit of ``pool_ids``: that of ``average_folds``, or of its share.

    None if a measurement has no units.
    """
    ids = pool_ids(measurements)
    if ids is None:
        return None
    scores = [measurement.units for measurement in measurements if measurement.units]
    values = np.concatenate([units.values for units in scores])
    if _are_shares(measurements):
        return values
    folds = np.repeat(np.arange(len(scores)), [units.values.size for units in scores])
    if share_units(measurements):
        codes = np.tile(np.arange(ids.size), len(scores))
    else:
        codes, _ = pd.factorize(np.concatenate([units.ids for units in scores]))
    return average_folds(values, codes, folds, ids.size)


def pool_ids(measurements: Sequence[Measurement]) -> Ids | None:
    """Return the units of all measurements, ``[u]``; None if a measurement has no units."""
    ids = [measurement.units.ids for measurement in measurements if measurement.units]
    if len(ids) < len(measurements):
        return None
    return ids[0] if share_units(measurements) else pd.unique(np.concatenate(ids))


def _are_shares(measurements: Sequence[Measurement]) -> bool:
    """Return whether each unit has one value, which is 0 or 1."""
    scores = [measurement.units for measurement in measurements if measurement.units]
    if len(scores) < len(measurements) or not all(units.share for units in scores):
        return False
    ids = pool_ids(measurements)
    return ids is not None and ids.size == sum(units.ids.size for units in scores)


def average_replicates(measurements: Sequence[Measurement]) -> FloatArray | None:
    """Return the mean of each bootstrap replicate, ``float64[b]``; None if there are none."""
    replicates = [row.replicates for row in measurements if row.replicates is not None]
    return average_defined(replicates) if len(replicates) == len(measurements) else None


def find_df(measurements: Sequence[Measurement]) -> float:
    """Return the smallest degrees of freedom of the bootstrap samples; NaN if none has some."""
    return min((row.df for row in measurements if not math.isnan(row.df)), default=math.nan)


def estimate_interval(measurements: Sequence[Measurement], mean: float) -> tuple[float, float]:
    """Return the 95% interval of a mean over folds and seeds.

    Samples without a spread give none where those of single folds gave none.

    Intervals that do not follow from the units are averaged, which is conservative: the standard
    error of a mean is at most the mean of the standard errors.
    """
    if any(row.own_interval for row in measurements):
        ends = np.array([[row.ci_low, row.ci_high] for row in measurements])
        low, high = ends.mean(axis=0)
        return float(low), float(high)
    if all(row.units is not None and row.units.errors is not None for row in measurements):
        (pooled,) = pool_groups(measurements)
        return pooled.ci_low, pooled.ci_high
    values, replicates = pool_units(measurements), average_replicates(measurements)
    if replicates is not None:
        log_scale = all(row.log_scale for row in measurements)
        low, high = compute_sample_interval(
            mean, replicates, df=find_df(measurements), log_scale=log_scale
        )
        has_interval = any(not math.isnan(row.ci_low) for row in measurements)
        return (low, high) if has_interval or low != high else (math.nan, math.nan)
    if values is not None:
        summary = Measurement.from_values(values, share=_are_shares(measurements))
        shift = mean - summary.value
        return summary.ci_low + shift, summary.ci_high + shift
    return math.nan, math.nan


def _widen_interval(
    ends: Bounds, measurements: Sequence[Measurement], bounds: Bounds, mean: float
) -> Bounds:
    """Return the interval of a mean over folds and seeds; see ``widen_ends`` for equal values."""
    values = pool_units(measurements) if ends[0] == ends[1] else None
    if values is None or any(row.own_interval for row in measurements):
        return ends
    return widen_ends(ends, bounds, mean, int((~np.isnan(values)).sum()))


def average_defined(values: Sequence[FloatArray | float]) -> FloatArray:
    """Return the mean over the first axis without NaN; NaN if all values are NaN.

    >>> average_defined([np.array([1.0, np.nan]), np.array([3.0, np.nan])]).tolist()
    [2.0, nan]
    """
    stacked = np.stack([np.asarray(value, dtype=np.float64) for value in values])
    defined = ~np.isnan(stacked)
    total = np.where(defined, stacked, 0.0).sum(axis=0)
    counts = defined.sum(axis=0)
    mean: FloatArray = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return mean


def sum_counts(
    counts: Mapping[str, FloatArray | None], group_counts: Mapping[str, FloatArray | None]
) -> FloatArray:
    """Return the sum of the counts of a target over the datasets.

    Counts of one row are added. Counts of two rows hold the counts of the target, then the totals
    that all targets of a group share, such as the number of recommended items: a dataset without
    the target adds 0 to the first row and its totals to the second.

    Args:
        counts: The counts of each dataset that has the target.
        group_counts: The counts of any target of the same group, for each dataset.

    >>> sum_counts({"a": np.array([[1.0], [4.0]])}, {"b": np.array([[9.0], [6.0]])}).tolist()
    [[1.0], [10.0]]
    """
    total = np.sum([array for array in counts.values() if array is not None], axis=0)
    if total.ndim == 2:
        for dataset, array in group_counts.items():
            if dataset not in counts and array is not None:
                total[1] += array[1]
    return np.asarray(total, dtype=np.float64)


_MIN_DATASETS = 3
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
        compared: The values of the units that models are compared by, ``float64[u]``, where these
            depend on the units that all models define.
    """

    dataset: str
    model: str
    seed: int | str
    fold: int | str
    metric: PluginSpec
    measurement: Measurement
    missing: str = ""
    bounds: measures.Bounds = measures.UNBOUNDED
    compared: FloatArray | None = None

    @property
    def fit_keys(self) -> dict[str, Any]:
        """Dataset, model, seed and fold."""
        return {name: vars(self)[name] for name in FIT_COLUMNS}

    @property
    def metric_keys(self) -> dict[str, Any]:
        """Metric, k, group and target."""
        group, target = self.measurement.group, self.measurement.target
        keys = (self.metric.label, self.metric.cutoff, group, target)
        return dict(zip(METRIC_KEY_COLUMNS, keys, strict=True))

    @property
    def identity(self) -> tuple[Any, ...]:
        """What the values of all seeds and folds share: dataset, model and metric keys."""
        return (self.dataset, self.model, *self.metric_keys.values())

    @property
    def is_pooled(self) -> bool:
        """Whether it is of several seeds or folds together."""
        return ALL in {self.seed, self.fold}

    def row(self) -> dict[str, Any]:
        """Return its row of ``metrics.csv``."""
        values = {name: vars(self.measurement)[name] for name in VALUE_COLUMNS}
        return {**self.fit_keys, **self.metric_keys, **values}


def make_fit_keys(model_plan: ModelPlan) -> dict[str, Any]:
    """Return the dataset, model, seed and fold of a model plan."""
    keys = model_plan.data_context.keys
    values = keys.dataset, model_plan.model.label, keys.seed or 0, keys.fold or 0
    return dict(zip(FIT_COLUMNS, values, strict=True))


def _make_measurement(
    fit_keys: Mapping[str, Any], metric: PluginSpec, value: Measurement
) -> ModelMeasurement:
    """Return a value of a model, whose interval is within the range of the metric or the gap."""
    plugin = metric.plugin
    if isinstance(plugin, HasBounds):
        bounds = plugin.find_bounds(value)
    else:
        bounds = measures.read_bounds(read_section(type(plugin), "Range"))
    kind = metric.grouping.gap if metric.grouping and not value.group else ""
    if kind in DEFINITIONS:
        width = (bounds[1] - bounds[0]) / (math.sqrt(2.0) if kind == "std" else 1.0)
        low, high = measures.read_bounds(DEFINITIONS[kind].values)
        bounds = (low, width if kind in DIFFERENCES else high)
    limited = measures.limit_interval(value, bounds)
    return ModelMeasurement(**fit_keys, metric=metric, measurement=limited, bounds=bounds)


def collect_measurements(plan: Plan, executor: Executor) -> list[ModelMeasurement]:
    """Return all measurements of a run in the order of the plan; a metric without evidence too.

    Where some models lack lists of queries that others serve, the means over the queries that all
    serve follow, in the group ``SERVED``; then the gaps and other summaries of groups over several
    seeds and folds, whose seed or fold is ``all``: they are no means of those of single folds.
    """
    measurements = []
    for model_plan in plan.model_plans:
        fit_keys = make_fit_keys(model_plan)
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            values = executor.value(stage) if executor.has_succeeded(stage) else ()
            measurements += [_make_measurement(fit_keys, metric, value) for value in values]
        none = Measurement(math.nan, n=0, undefined=1)
        measurements += [
            ModelMeasurement(**fit_keys, metric=metric, measurement=none, missing=missing)
            for metric, model, missing in plan.undefined
            if model.label == model_plan.model.label
        ]
        executor.forget(model_plan.measures)
    shared = _share_contributions(plan, executor)
    measurements = [replace(row, compared=shared.get(_make_key(row))) for row in measurements]
    served = [*_select_served(measurements, _find_served(plan, executor))]
    varying = _list_varying(measurements)
    if not varying:
        return [*measurements, *served]
    pooled = [*_pool_gaps(varying, plan, executor), *pool_summaries(measurements, varying)]
    return [*measurements, *served, *pooled]


def _make_key(row: ModelMeasurement) -> tuple[Any, ...]:
    return (row.model, row.dataset, row.seed, row.fold, *row.metric_keys.values())


def _share_contributions(plan: Plan, executor: Executor) -> dict[tuple[Any, ...], FloatArray]:
    """Return the contributions to groups known as probabilities, of the queries of all models.

    The contribution of a query depends on the others with a value, so those of two models can be
    subtracted only if they are made from the same queries. Empty where all are.
    """
    values: dict[tuple[Any, ...], dict[str, FloatArray]] = defaultdict(dict)
    groups: dict[tuple[Any, ...], UncertainGroups] = {}
    for model_plan, metric, queries, row in _list_uncertain_values(plan, executor):
        keys = model_plan.data_context.keys
        fit_keys = (keys.dataset, keys.seed or 0, keys.fold or 0)
        quantity = (*fit_keys, metric.label, metric.cutoff, row.target)
        groups[quantity] = read_uncertain_groups(queries.labels, metric.grouping.by)
        values[quantity][model_plan.model.label] = row.units.values
    shared: dict[tuple[Any, ...], FloatArray] = {}
    for (*place, target), models in values.items():
        defined = ~np.isnan(np.stack([*models.values()]))
        if (defined == defined[0]).all():
            continue
        named = groups[*place, target]
        for model, of_model in models.items():
            used = np.where(defined.all(axis=0), of_model, np.nan)
            columns = zip(named.names, measure_contributions(used, named).values.T, strict=True)
            shared |= {(model, *place, name, target): column for name, column in columns}
    return shared


def _list_uncertain_values(
    plan: Plan, executor: Executor
) -> Iterator[tuple[ModelPlan, Any, Queries, Any]]:
    """Yield the values of the queries of each metric by groups known as probabilities."""
    for model_plan in plan.model_plans:
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            by = metric.grouping.by if metric.grouping else ""
            if parse_uncertain_label(by) is not None and executor.has_succeeded(stage):
                queries, measured = map(executor.value, stage.inputs)
                for row in measured:
                    yield model_plan, metric, queries, row


_Served: TypeAlias = Mapping[tuple[str, int | str, int | str], tuple[Ids, BoolArray]]
"""The queries of each dataset, seed and fold, and which of them all models have a list for."""


def _find_served(plan: Plan, executor: Executor) -> _Served:
    """Return the queries of each data context, and which of them all models have a list for."""
    served: dict[tuple[str, int | str, int | str], tuple[Ids, BoolArray]] = {}
    measures_lists = any("lists" in metric.needs for metric in plan.experiment.metrics)
    for context in plan.data_contexts if measures_lists else ():
        answers = [
            row.answer
            for row in plan.model_plans
            if row.data_context is context and row.answer and executor.has_succeeded(row.answer)
        ]
        masks = []
        for answer in answers if len(answers) > 1 else ():
            lists = executor.value(answer).lists
            masks += [] if lists is None else [lists.filled.any(axis=1)]
            executor.forget((answer,))
        if len(masks) > 1:
            keys = context.keys.dataset, context.keys.seed or 0, context.keys.fold or 0
            served[keys] = executor.value(context.queries).ids.ids, np.all(masks, axis=0)
    return served


def _select_served(
    measurements: Sequence[ModelMeasurement], served: _Served
) -> Iterator[ModelMeasurement]:
    """Yield the means over the queries that all models serve, of metrics that have others too.

    A metric has them for all seeds and folds of a dataset or for none, so that their means are of
    the same seeds and folds as those of all queries.
    """
    quantities: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    for row in measurements:
        ids, _ = served.get((row.dataset, row.seed, row.fold), (None, None))
        units = row.measurement.units
        is_of_queries = units is not None and ids is not None and np.array_equal(units.ids, ids)
        if is_of_queries and row.metric.grouping is None and "lists" in row.metric.needs:
            quantities[row.dataset, *row.metric_keys.values()].append(row)
    for rows in quantities.values():
        selected = [_restrict(row, served[row.dataset, row.seed, row.fold][1]) for row in rows]
        counts = [
            (new.measurement.n, old.measurement.n) for new, old in zip(selected, rows, strict=True)
        ]
        if any(n < total for n, total in counts) and any(n for n, _ in counts):
            yield from selected


def _restrict(row: ModelMeasurement, is_used: BoolArray) -> ModelMeasurement:
    """Return the mean over some of the queries."""
    whole = row.measurement
    units: Any = whole.units
    values = np.where(is_used, units.values, np.nan)
    mean = Measurement.from_units(
        replace(units, values=values), group=measures.SERVED, target=whole.target
    )
    mean = replace(mean, undefined=int(np.isnan(values[is_used]).sum()))
    if whole.own_interval:
        mean = replace(mean, ci_low=math.nan, ci_high=math.nan, own_interval=True)
    return replace(row, measurement=limit_interval(mean, row.bounds))


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
    singles = [row for row in measurements if not row.is_pooled]
    rows = METRICS.build(measurement.row() for measurement in singles)
    means = []
    if averaged := [name for name in ("seed", "fold") if len(set(rows[name])) > 1]:
        means.append(_add_intervals(_average_over(rows, averaged), measurements))
    if len(set(rows["dataset"])) > 1:
        over_datasets = _average_over(means[0] if means else rows, ["dataset"])
        means.append(_limit_intervals(over_datasets, measurements))
    means += _pool_datasets(singles)
    return pd.concat([rows.astype({"seed": object, "fold": object}), *means]) if means else rows


def _average_over(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the mean and spread of each value over some columns."""
    keys = [name for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS) if name not in columns]
    means = []
    for key, group in rows.groupby(keys, sort=False, dropna=False):
        summary = Measurement.from_values(group["value"].to_numpy(dtype=np.float64))
        mean = dict(zip(keys, key, strict=True)) | dict.fromkeys(columns, ALL)
        mean |= {name: vars(summary)[name] for name in VALUE_COLUMNS}
        if "dataset" not in columns or summary.n < _MIN_DATASETS:
            mean |= {"ci_low": math.nan, "ci_high": math.nan}
        means.append(mean)
    return METRICS.build(means)


def _limit_intervals(
    means: pd.DataFrame, measurements: Sequence[ModelMeasurement]
) -> pd.DataFrame:
    """Return means over datasets, whose intervals are within the ranges of the metrics."""
    bounds = {row.metric.label: row.bounds for row in measurements}
    columns = (means[name].astype(float) for name in ("value", "n", "ci_low", "ci_high"))
    limited = [
        measures.limit_ends(
            measures.widen_ends((low, high), bounds[metric], value, int(n)), bounds[metric], value
        )
        for metric, value, n, low, high in zip(means["metric"], *columns, strict=True)
    ]
    lows, highs = zip(*limited, strict=True)
    return means.assign(ci_low=list(lows), ci_high=list(highs))


def _add_intervals(means: pd.DataFrame, measurements: Sequence[ModelMeasurement]) -> pd.DataFrame:
    """Return means over folds and seeds with the intervals of ``average_folds``.

    A gap is not the mean of gaps, which have no sign, but that of the groups' means, and a summary
    of groups of items that of the groups' means.
    """
    averaged: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    for row in measurements:
        averaged[row.identity].append(row)
    values = []
    for rows, mean in zip(averaged.values(), means["value"].astype(float), strict=True):
        last, bounds = rows[-1].measurement, rows[0].bounds
        if rows[-1].is_pooled:
            values.append((last.value, last.ci_low, last.ci_high))
            continue
        folds = [row.measurement for row in rows]
        ends = _widen_interval(estimate_interval(folds, mean), folds, bounds, mean)
        values.append((mean, *measures.limit_ends(ends, bounds, mean)))
    points, lows, highs = map(list, zip(*values, strict=True))
    return means.assign(value=points, ci_low=lows, ci_high=highs)


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
    return [METRICS.build(rows)] if rows else []


def collect_groups(
    measured: Sequence[ModelMeasurement], plan: Plan, executor: Executor
) -> list[ModelMeasurement]:
    """Return the groups of each metric by group, also those of a ``gap: difference`` alone.

    With several seeds or folds a group has the mean of each of its units, and the tests of these
    means are contrasts of the first group; the test of a gap is that of its measurement. With one
    seed and fold there are no contrasts: ``measured`` has them.
    """
    rows = [row for row in measured if _get_gap(row.metric) == "groups"]
    listed = {identify_groups(row.metric) for row in rows}
    gaps = [spec for spec in plan.experiment.metrics if _get_gap(spec) == "difference"]
    alone = [spec for spec in gaps if identify_groups(spec) not in listed]
    rows += [row for spec in alone for row in _measure_groups(spec, plan.model_plans, executor)]
    varying = _list_varying(measured)
    if not varying:
        return [replace(row, measurement=replace(row.measurement, contrasts=())) for row in rows]
    return [pooled for folds in _gather_folds(rows) for pooled in _pool(folds, varying)]


def _list_varying(measured: Sequence[ModelMeasurement]) -> dict[str, Any]:
    """Return ``all`` for each of seed and fold that a run has several of."""
    values = {name: {vars(row)[name] for row in measured} for name in ("seed", "fold")}
    return {name: ALL for name in values if len(values[name]) > 1}


def pool_summaries(
    measured: Sequence[ModelMeasurement], varying: Mapping[str, Any]
) -> Iterator[ModelMeasurement]:
    """Yield each summary of groups of items over seeds and folds: that of the groups' means."""
    rows_of: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    for row in measured:
        if row.measurement.parts and row.metric.grouping is None:
            rows_of[row.identity].append(row)
    for rows in rows_of.values():
        folds, metric = [row.measurement for row in rows], rows[0].metric.plugin
        names = dict.fromkeys(name for fold in folds for name in fold.parts)
        size = min(next(iter(fold.parts.values())).size for fold in folds)
        undefined = np.full(size, np.nan)
        parts = [[fold.parts.get(name, undefined)[:size] for name in names] for fold in folds]
        means = average_defined([np.stack(part, axis=1) for part in parts])
        values = metric.combine(means, means[0])
        replicates = values[1:] if values.size > 1 else average_replicates(folds)
        value = replace(folds[0], value=float(values[0]), replicates=replicates, df=find_df(folds))
        low, high = estimate_interval([value], value.value)
        row = replace(rows[0], **varying)
        value = replace(value, ci_low=low, ci_high=high)
        yield replace(row, measurement=limit_interval(value, row.bounds))


def _pool_gaps(
    varying: Mapping[str, Any], plan: Plan, executor: Executor
) -> Iterator[ModelMeasurement]:
    """Yield each gap over several seeds and folds: that of the groups' means over them."""
    gaps = [spec for spec in plan.experiment.metrics if _get_gap(spec) not in {"", "groups"}]
    plans = defaultdict(list)
    for model_plan in plan.model_plans:
        plans[model_plan.data_context.keys.dataset, model_plan.model.label].append(model_plan)
    for spec, folds_of_model in product(gaps, plans.values()):
        for folds in _gather_folds([*_measure_groups(spec, folds_of_model, executor)]):
            grouping: Any = spec.grouping
            gap = GroupMeasurements(spec.name, grouping, spec.plugin.direction)
            seed = derive_seed(0, "bootstrap", folds[0].dataset)
            value = gap.pool([fold.measurement for fold in folds], seed)
            fit_keys = {**{name: vars(folds[0])[name] for name in FIT_COLUMNS}, **varying}
            yield _make_measurement(fit_keys, spec, value)


def _get_gap(metric: PluginSpec) -> str:
    return (metric.grouping and metric.grouping.gap) or ""


def identify_groups(metric: PluginSpec) -> tuple[Any, ...]:
    """Return what metrics of the same groups share."""
    grouping = metric.grouping
    by = (grouping.by, grouping.min_group) if grouping else ()
    return (metric.name, repr(metric.parameters), *by)


def _measure_groups(
    metric: PluginSpec, model_plans: Sequence[ModelPlan], executor: Executor
) -> Iterator[ModelMeasurement]:
    """Yield the groups of a gap, from the stored values of the queries."""
    for model_plan in model_plans:
        fit_keys = make_fit_keys(model_plan)
        for spec, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            if spec != metric or spec.grouping is None or not executor.has_succeeded(stage):
                continue
            queries, values = map(executor.value, stage.inputs)
            group_values = GroupMeasurements(metric.name, replace(spec.grouping, gap=None))
            for group in group_values(queries, values):
                yield _make_measurement(fit_keys, metric, group)
            executor.forget(stage.inputs[1:])


def _gather_folds(rows: Sequence[ModelMeasurement]) -> list[list[ModelMeasurement]]:
    """Return the groups of all seeds and folds of each model, metric and target."""
    folds: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    for row in rows:
        key = (row.dataset, row.model, row.metric.label, row.metric.cutoff, row.measurement.target)
        folds[key].append(row)
    return [*folds.values()]


def _pool(
    folds: Sequence[ModelMeasurement], varying: Mapping[str, Any]
) -> Iterator[ModelMeasurement]:
    """Yield the pooled groups, with their tests."""
    row = replace(folds[0], **varying)
    groups = pool_groups([fold.measurement for fold in folds])
    if _get_gap(row.metric) == "groups":
        tests = _compare(groups, row.metric, folds)
        groups[0] = replace(groups[0], contrasts=tuple(tests))
    for group in groups:
        yield replace(row, measurement=limit_interval(group, row.bounds))


def _compare(
    groups: Sequence[Measurement], metric: PluginSpec, folds: Sequence[ModelMeasurement]
) -> list[Contrast]:
    if metric.grouping is None:
        return []
    # With a reference group, it is the second side of each test in each fold.
    tests = [test for fold in folds for test in fold.measurement.contrasts]
    reference = tests[0].b if metric.grouping.reference_group and tests else ""
    if parse_uncertain_label(metric.grouping.by) is not None:
        return compare_pooled_contributions(groups, reference=reference)
    named = [*dict.fromkeys((test.a, test.b) for test in tests)] if metric.grouping.pairs else []
    least = metric.grouping.min_group
    return compare_pooled_groups(groups, min_group=least, reference=reference, named=named)


_NUMBERS = frozenset({"seed", "fold", "k"})
"""The keys of a row that are numbers; the others are texts."""


def repeat_keys(keys: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return columns of ``n`` rows that repeat keys: numbers, and texts as Arrow dictionaries."""
    columns: dict[str, Any] = {}
    for name, value in keys.items():
        if name in _NUMBERS:
            is_cutoff = name == "k"  # which may be missing
            number = math.nan if value is None else value
            columns[name] = np.full(n, number, dtype=np.float64 if is_cutoff else None)
        else:
            codes = np.zeros(n, dtype=np.int32)
            columns[name] = encode_column(codes, np.array([value], dtype=object))
    return columns


def encode_column(codes: AnyArray, texts: Ids) -> Any:
    """Return the column ``texts[codes]`` as an Arrow dictionary array."""
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32, copy=False))
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, type=pa.string()))


class TableWriter:
    """Writes chunks of one table to a Parquet file, which is not created if none has rows."""

    GROUP: ClassVar[int] = 2**20
    """The most rows of a row group; larger chunks are divided."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, columns: Mapping[str, Any]) -> None:
        """Write a chunk, the array of each column by name, unless it has no rows."""
        import pyarrow as pa
        from pyarrow import parquet

        chunk = pa.table(dict(columns))
        if not chunk.num_rows:
            return
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self.path, chunk.schema)
        self._writer.write_table(chunk)


_USAGE = ("prompt_tokens", "completion_tokens")
"""The labels of a response that count tokens."""


def write_response_lines(responses: Responses, fit_keys: dict[str, Any]) -> Iterator[str]:
    """Yield one JSON line for each response; a field that the model does not give is null.

    Args:
        responses: The responses of a model.
        fit_keys: Its dataset, model, seed and fold.
    """
    labels = responses.labels.to_dict("records") or [{}] * len(responses)
    for query_id, text, row in zip(responses.ids, responses.texts, labels, strict=True):
        label = {str(name): _as_json(value) for name, value in row.items()}
        line = fit_keys | {
            "query_id": query_id,
            **({"order": label["order"]} if "order" in label else {}),
            "prompt": label.get("prompt"),
            "reply": text,
            "outcome": label.get("outcome"),
            "parsed": _parse_json(label.get("parsed")),
            "usage": {name: label[name] for name in _USAGE if name in label} or None,
            "cached": label.get("cached"),
        }
        yield json.dumps(line, ensure_ascii=False) + "\n"


def write_label_replies(path: Path, plan: Plan, executor: Executor) -> None:
    """Write the replies that labels follow from, each labelling once; no file without any."""
    stages = {
        stage.digest: (stage, spec.label)
        for context in plan.data_contexts
        for stage, spec in zip(context.labels, plan.experiment.labels, strict=True)
    }
    for stage, detector in stages.values():
        replies = executor.value(stage).replies
        if replies is not None:
            keys = {"dataset": stage.keys.dataset, "seed": stage.keys.seed, "detector": detector}
            with path.open("a", encoding="utf-8") as stream:
                stream.writelines(_write_label_lines(replies, keys))


def _write_label_lines(replies: pd.DataFrame, keys: dict[str, Any]) -> Iterator[str]:
    """Yield one JSON line for each reply that labels follow from; without a probability null."""
    grouped = ("probability", "label")
    for row in replies.to_dict("records"):
        line: dict[str, Any] = dict(keys)
        for column, value in row.items():
            name, _, kind = str(column).partition(".")
            if kind and name in grouped:
                line.setdefault(name, {})[kind] = _as_json(value)
            else:
                line[name] = _as_json(value)
        yield json.dumps(line, ensure_ascii=False) + "\n"


def _parse_json(text: Any) -> Any:
    """Return the value of a JSON text; a label of the user that is not JSON as it is."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return text


def _as_json(value: Any) -> Any:
    """Return a cell as a plain value; a missing cell is None."""
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


_FOLDER = "directions"
"""The folder of the files ``1.npy``, ``2.npy``, ..., each a unit vector, ``float64[d]``."""


QueryDigests: TypeAlias = Mapping[tuple[str, int | str, int | str], str]
"""The digest of the queries of each dataset, seed and fold."""


def write_supplements(
    folder: Path, measured: Sequence[ModelMeasurement], query_digests: QueryDigests
) -> None:
    """Write units, bootstrap samples, counts and directions; see ``build_replicate_tables``."""
    tables = {
        "per_unit.parquet": build_unit_tables(measured),
        "replicates.parquet": build_replicate_tables(measured, query_digests),
    }
    for name, chunks in tables.items():
        with TableWriter(folder / name) as writer:
            for chunk in chunks:
                writer.add(chunk)
    _write_counts(folder, measured)
    _write_directions(folder, measured)


def _write_counts(folder: Path, measured: Sequence[ModelMeasurement]) -> None:
    """Write the counts that determine values; no file without such values."""
    rows = [row for value in measured for row in _list_counts(value)]
    if rows:
        COUNTS.write(folder, rows)


def _write_directions(folder: Path, measured: Sequence[ModelMeasurement]) -> None:
    """Write each direction once, and the table of them; nothing without directions."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for value in measured:
        keys = value.fit_keys | {"metric": value.metric.label}
        for name, axis in value.measurement.axes.items():
            row = keys | {"direction": name}
            if tuple(row.values()) in rows or np.isnan(axis).any():
                continue
            file = f"{_FOLDER}/{len(rows) + 1}.npy"
            rows[tuple(row.values())] = row | {"dimensions": axis.size, "file": file}
            (folder / _FOLDER).mkdir(exist_ok=True)
            np.save(folder / file, axis, allow_pickle=False)
    if rows:
        DIRECTIONS.write(folder, rows.values())


def _list_counts(value: ModelMeasurement) -> list[dict[str, Any]]:
    counts = value.measurement.counts
    if counts is None:
        return []
    keys = value.fit_keys | value.metric_keys
    numbered = [f"count_{number}" for number in range(1, counts.size + 1)]
    names = getattr(value.metric.plugin, "count_names", numbered)
    rows = zip(names, counts.ravel().tolist(), strict=True)
    return [{**keys, "name": name, "count": count} for name, count in rows]


def build_unit_tables(measurements: Iterable[ModelMeasurement]) -> Iterator[dict[str, Any]]:
    """Yield ``per_unit.parquet`` in chunks: one chunk per measurement that has units."""
    for row in measurements:
        units = row.measurement.units
        if units is None or units.errors is not None:  # of which no mean has the interval alone
            continue
        n = units.values.size
        yield {
            **repeat_keys(row.fit_keys | {"unit": units.unit}, n),
            "unit_id": encode_column(np.arange(n), units.ids),
            **repeat_keys(row.metric_keys, n),
            "value": units.values,
        }


def build_replicate_tables(
    measurements: Iterable[ModelMeasurement],
    query_digests: QueryDigests,
) -> Iterator[dict[str, Any]]:
    """Yield ``replicates.parquet`` in chunks: the bootstrap samples of values of whole sets.

    Values of a target are excluded, since there may be many thousands, and those of several seeds
    or folds.

    Args:
        measurements: The measurements of a run.
        query_digests: The digest of the queries of each dataset, seed and fold. Runs with the same
            queries share their samples.
    """
    for row in measurements:
        replicates, units = row.measurement.replicates, row.measurement.units
        if replicates is None or units is not None or row.measurement.target or row.is_pooled:
            continue
        n, digest = replicates.size, query_digests[row.dataset, row.seed, row.fold]
        yield {
            **repeat_keys(row.fit_keys | row.metric_keys | {"queries": digest}, n),
            "df": np.full(n, row.measurement.df, dtype=np.float64),
            "log_scale": np.full(n, row.measurement.log_scale),
            "value": replicates,
        }


def list_searches(plan: Plan, executor: Executor) -> list[tuple[ModelPlan, SearchResult]]:
    """Return the results of the searches that succeeded, each once, in the order of the plan."""
    searches: dict[str, tuple[ModelPlan, SearchResult]] = {}
    for model_plan in plan.model_plans:
        stage = model_plan.search
        is_new = stage is not None and stage.digest not in searches
        if stage is not None and is_new and executor.has_succeeded(stage):
            searches[stage.digest] = model_plan, executor.value(stage)
            executor.forget((stage,))
    return [*searches.values()]


def write_searches(folder: Path, searches: Sequence[tuple[ModelPlan, SearchResult]]) -> None:
    """Write ``trials.csv`` and ``importances.csv``."""
    trials, importances = [], []
    for model_plan, search in searches:
        fit_keys = make_fit_keys(model_plan)
        trials += make_trial_rows(search.trials, fit_keys)
        importances += make_importance_rows(search, fit_keys)
    TRIALS.write(folder, trials)
    IMPORTANCES.write(folder, importances)


def describe_searches(searches: Sequence[tuple[ModelPlan, SearchResult]]) -> Iterator[str]:
    """Yield the best settings as comments, so that the spec itself still searches."""
    for model_plan, search in searches:
        keys = model_plan.data_context.keys
        fit = f"{model_plan.model.label} on {keys.dataset}, seed {keys.seed}, fold {keys.fold}"
        yield f"# chosen for {fit}: {json.dumps(search.best.settings, ensure_ascii=False)}\n"


def write_learning_curves(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write the losses of every training that recorded them; no file if there is none."""
    tables = []
    for model_plan in plan.model_plans:
        answer = model_plan.shared_answer or model_plan.answer
        if answer is None or not executor.has_succeeded(answer):
            continue
        curve = executor.value(answer).learning_curve
        if curve is not None:
            tables.append(curve[list(LEARNING_CURVE)].assign(**make_fit_keys(model_plan)))
        executor.forget((answer,))
    if tables:
        LEARNING_CURVES.write(folder, pd.concat(tables, ignore_index=True))


_NEEDS = frozenset({"lists", "test"})
"""What the metrics of accuracy need."""


def warn_about_zero_accuracy(
    models: Sequence[PluginSpec], measurements: Sequence[ModelMeasurement]
) -> None:
    """Warn about each model with given lists whose metrics of accuracy are all exactly 0.

    Undefined values do not count: the ratio of two groups whose means are 0 is undefined.

    This happens to lists that were made for another split: they leave out the items that were
    training items there, and these may be the test items here.
    """
    for model in models:
        values = [
            measured.measurement.value
            for measured in measurements
            if measured.model == model.label
            and measured.metric.needs >= _NEEDS
            and not math.isnan(measured.measurement.value)
        ]
        if isinstance(model.plugin, ChecksFiles) and values and not any(values):
            warn(
                f"{model.label}: every accuracy metric is exactly 0. Were these lists made for "
                "this split? Give the one they were made for: "
                "split: {name: given, train: train.csv, test: test.csv}"
            )


def warn_about_equal_values(measurements: Sequence[ModelMeasurement]) -> None:
    """Warn about the values without an interval whose units or samples are equal, and count them.

    A metric of units with bounds has an interval nevertheless; see ``widen_ends``.
    """
    singles = [row for row in measurements if not row.is_pooled]
    without = [row for row in singles if math.isnan(row.measurement.ci_low)]
    of_units = [row for row in without if row.measurement.std == 0]
    of_samples = [row for row in without if _has_equal_samples(row.measurement)]
    for rows, reason in (
        (of_units, "all units have one value, and the metric has no bounds"),
        (of_samples, "all bootstrap samples of the queries have one value"),
    ):
        names = Counter(row.metric.label for row in rows)
        if names:
            counts = "1 value has" if names.total() == 1 else f"{names.total():,} values have"
            warn(f"{counts} no interval ({', '.join(names)}): {reason}")


def _has_equal_samples(measurement: Measurement) -> bool:
    samples = measurement.replicates
    if measurement.units is not None or samples is None or np.isnan(samples).any():
        return False
    return bool(np.ptp(samples) <= ROUNDING * np.abs(samples).max(initial=0.0))
