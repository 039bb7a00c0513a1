"""The values of a run, from the measurements of its stages, and the table of them.

A user in five folds is one user, not five: the uncertainty is in the sample of users, so the
interval of a mean over folds is that of one value for each user (``average_folds``), not of the
five values.

Two groups are compared as two models are: by one value for each unit. A test within one seed
answers another question, and its difference may have another sign.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core import measures
from recbias.core.context import warn
from recbias.core.dataset import BoolArray, FloatArray, Ids
from recbias.core.docstrings import read_section
from recbias.core.errors import UnalignedScores
from recbias.core.files import derive_seed
from recbias.core.grouping import parse_uncertain_label, read_uncertain_groups
from recbias.core.measures import Bounds, Contrast, Measurement, limit_interval
from recbias.core.plugins import ChecksFiles, HasBounds, Pools
from recbias.runner.execute import Executor
from recbias.runner.grouping import GroupMeasurements
from recbias.runner.plan import Keys, ModelPlan, Plan
from recbias.statistics.compare import SystemEstimates
from recbias.statistics.groups import (
    DEFINITIONS,
    DIFFERENCES,
    average_folds,
    compare_pooled_groups,
    pool_groups,
)
from recbias.statistics.intervals import compute_sample_interval
from recbias.statistics.uncertain import compare_pooled_contributions, measure_contributions

_Row = TypeVar("_Row")

Place: TypeAlias = tuple[str, int | str, int | str]
"""A dataset, a seed and a fold."""

FailedValue: TypeAlias = tuple[str, str, str, int | None]
"""The dataset, model, metric and cutoff of a value whose stage failed."""

_MIN_DATASETS = 3
"""The mean of fewer datasets has no interval."""


def gather(rows: Iterable[_Row], key: Callable[[_Row], Hashable]) -> dict[Any, list[_Row]]:
    """Return rows by what they share, in the order in which it occurs first."""
    parts: dict[Any, list[_Row]] = defaultdict(list)
    for row in rows:
        parts[key(row)].append(row)
    return parts


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
    bounds: Bounds = measures.UNBOUNDED
    compared: FloatArray | None = None

    @property
    def place(self) -> Place:
        """Dataset, seed and fold."""
        return self.dataset, self.seed, self.fold

    @property
    def fit_keys(self) -> dict[str, Any]:
        """Dataset, model, seed and fold."""
        return {name: vars(self)[name] for name in measures.FIT_COLUMNS}

    @property
    def metric_keys(self) -> dict[str, Any]:
        """Metric, k, group and target."""
        group, target = self.measurement.group, self.measurement.target
        keys = (self.metric.label, self.metric.cutoff, group, target)
        return dict(zip(measures.METRIC_KEY_COLUMNS, keys, strict=True))

    @property
    def identity(self) -> tuple[Any, ...]:
        """What the values of all seeds and folds share: dataset, model and metric keys."""
        return (self.dataset, self.model, *self.metric_keys.values())

    @property
    def is_pooled(self) -> bool:
        """Whether it is of several seeds or folds together."""
        return measures.ALL in {self.seed, self.fold}

    def row(self) -> dict[str, Any]:
        """Return its row of ``metrics.csv``."""
        values = {name: vars(self.measurement)[name] for name in measures.VALUE_COLUMNS}
        return {**self.fit_keys, **self.metric_keys, **values}


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measurements of a run, and what its tables, tests and checks make of them, once.

    Args:
        rows: Those of ``collect_measurements``.
        groups: Those of ``_collect_groups``, with the contrasts over all seeds and folds.
        failed: The dataset, model, metric and cutoff of each value of which a stage failed.
    """

    rows: Sequence[ModelMeasurement]
    groups: Sequence[ModelMeasurement] = ()
    failed: Sequence[FailedValue] = ()

    @classmethod
    def of_run(
        cls, rows: Sequence[ModelMeasurement], plan: Plan, executor: Executor
    ) -> Measurements:
        """Return the measurements of a run with its groups and failures."""
        return cls(
            rows, _collect_groups(rows, plan, executor), _list_failed_values(plan, executor)
        )

    @property
    def defined(self) -> list[ModelMeasurement]:
        """The measurements of which no output is missing."""
        return [row for row in self.rows if not row.missing]

    @property
    def bounds(self) -> dict[str, Bounds]:
        """Those of the values of each metric, by its label."""
        return {row.metric.label: row.bounds for row in self.defined}

    @cached_property
    def table(self) -> pd.DataFrame:
        """The content of ``metrics.csv``."""
        return build_metrics_table(self.rows)

    @cached_property
    def estimates(self) -> list[SystemEstimates]:
        """The values of all models on each quantity: in each fold, and over several folds.

        Raises:
            UnalignedScores: Two models were measured on different units.
        """
        return _collect_estimates(self.defined)


def locate(keys: Keys) -> Place:
    """Return the dataset, seed and fold of a stage; 0 where there is no seed or fold."""
    return keys.dataset, keys.seed or 0, keys.fold or 0


def make_fit_keys(model_plan: ModelPlan) -> dict[str, Any]:
    """Return the dataset, model, seed and fold of a model plan."""
    dataset, seed, fold = locate(model_plan.data_context.keys)
    return dict(
        zip(measures.FIT_COLUMNS, (dataset, model_plan.model.label, seed, fold), strict=True)
    )


# ---- one value of several seeds and folds ----


class _PooledUnits(NamedTuple):
    """The units of several seeds and folds, with one value each; ``share`` if each is 0 or 1."""

    ids: Ids
    values: FloatArray
    share: bool


def _share_units(measurements: Sequence[Measurement]) -> bool:
    """Return whether all measurements with units have the same units in the same order."""
    units = [measurement.units.ids for measurement in measurements if measurement.units]
    return all(ids is units[0] or np.array_equal(ids, units[0]) for ids in units[1:])


def pool_units(measurements: Sequence[Measurement]) -> _PooledUnits | None:
    """Return the values of units by ``average_folds``; shares of units with one value stay so.

    None if a measurement has no units.
    """
    scores = [measurement.units for measurement in measurements if measurement.units]
    if len(scores) < len(measurements):
        return None
    values = np.concatenate([units.values for units in scores])
    if _share_units(measurements):
        ids, codes = scores[0].ids, np.tile(np.arange(scores[0].ids.size), len(scores))
    else:
        codes, ids = pd.factorize(np.concatenate([units.ids for units in scores]))
    if all(units.share for units in scores) and ids.size == values.size:
        return _PooledUnits(ids, values, share=True)
    folds = np.repeat(np.arange(len(scores)), [units.values.size for units in scores])
    return _PooledUnits(ids, average_folds(values, codes, folds, ids.size), share=False)


def _average_replicates(measurements: Sequence[Measurement]) -> FloatArray | None:
    """Return the mean of each bootstrap replicate, ``float64[b]``; None if there are none."""
    replicates = [row.replicates for row in measurements if row.replicates is not None]
    return _average_defined(replicates) if len(replicates) == len(measurements) else None


def find_df(measurements: Sequence[Measurement]) -> float:
    """Return the smallest degrees of freedom of the bootstrap samples; NaN if none has some."""
    return min((row.df for row in measurements if not math.isnan(row.df)), default=math.nan)


def _average_defined(values: Sequence[FloatArray | float]) -> FloatArray:
    """Return the mean over the first axis without NaN; NaN if all values are NaN.

    >>> _average_defined([np.array([1.0, np.nan]), np.array([3.0, np.nan])]).tolist()
    [2.0, nan]
    """
    stacked = np.stack([np.asarray(value, dtype=np.float64) for value in values])
    defined = ~np.isnan(stacked)
    total = np.where(defined, stacked, 0.0).sum(axis=0)
    counts = defined.sum(axis=0)
    mean: FloatArray = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return mean


def estimate_interval(
    measurements: Sequence[Measurement], mean: float, bounds: Bounds | None = None
) -> Bounds:
    """Return the 95% interval of a mean over folds and seeds.

    Samples without a spread give none where those of single folds gave none. Intervals that do not
    follow from the units are averaged, which is conservative: the standard error of a mean is at
    most the mean of the standard errors. Within ``bounds``, that of equal values of units is that
    of ``widen_ends``.
    """
    if any(row.own_interval for row in measurements):
        ends = np.array([[row.ci_low, row.ci_high] for row in measurements])
        low, high = ends.mean(axis=0)
        return float(low), float(high)
    pooled, replicates = pool_units(measurements), _average_replicates(measurements)
    if all(row.units is not None and row.units.errors is not None for row in measurements):
        (whole,) = pool_groups(measurements)
        low, high = whole.ci_low, whole.ci_high
    elif replicates is not None:
        log_scale = all(row.log_scale for row in measurements)
        df = find_df(measurements)
        low, high = compute_sample_interval(mean, replicates, df=df, log_scale=log_scale)
        if low == high and all(math.isnan(row.ci_low) for row in measurements):
            low = high = math.nan
    elif pooled is not None:
        summary = Measurement.from_values(pooled.values, share=pooled.share)
        shift = mean - summary.value
        low, high = summary.ci_low + shift, summary.ci_high + shift
    else:
        return math.nan, math.nan
    if bounds is None or pooled is None:
        return low, high
    return measures.widen_ends((low, high), bounds, mean, int((~np.isnan(pooled.values)).sum()))


# ---- the measurements of a run ----


def collect_measurements(plan: Plan, executor: Executor) -> list[ModelMeasurement]:
    """Return all measurements of a run in the order of the plan; a metric without evidence too.

    Where some models lack lists of queries that others serve, the means over the queries that all
    serve follow, in the group ``SERVED``; then the gaps and other summaries of groups over several
    seeds and folds, whose seed or fold is ``all``: they are no means of those of single folds.
    """
    rows: list[ModelMeasurement] = []
    none, undefined = Measurement(math.nan, n=0, undefined=1), plan.undefined
    for model_plan in plan.model_plans:
        fit_keys = make_fit_keys(model_plan)
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            values = executor.value(stage) if executor.has_succeeded(stage) else ()
            rows += [_make_measurement(fit_keys, metric, value) for value in values]
        rows += [
            ModelMeasurement(**fit_keys, metric=metric, measurement=none, missing=missing)
            for metric, model, missing in undefined
            if model.label == model_plan.model.label
        ]
        executor.forget(model_plan.measures)
    shared = _share_contributions(plan, executor)
    rows = [
        replace(row, compared=shared.get((row.model, *row.place, *row.metric_keys.values())))
        for row in rows
    ]
    served = [*_select_served(rows, _find_served(plan, executor))]
    varying = _list_varying(rows)
    if not varying:
        return [*rows, *served]
    return [*rows, *served, *_pool_gaps(varying, plan, executor), *pool_summaries(rows, varying)]


def _make_measurement(
    fit_keys: Mapping[str, Any], metric: PluginSpec, value: Measurement
) -> ModelMeasurement:
    """Return a value of a model, whose interval is within the range of the metric or the gap."""
    plugin = metric.plugin
    if isinstance(plugin, HasBounds):
        bounds = plugin.find_bounds(value)
    else:
        bounds = measures.read_bounds(read_section(type(plugin), "Range"))
    kind = _get_gap(metric) if not value.group else ""
    if kind in DEFINITIONS:
        width = (bounds[1] - bounds[0]) / (math.sqrt(2.0) if kind == "std" else 1.0)
        low, high = measures.read_bounds(DEFINITIONS[kind].values)
        bounds = (low, width if kind in DIFFERENCES else high)
    limited = limit_interval(value, bounds)
    return ModelMeasurement(**fit_keys, metric=metric, measurement=limited, bounds=bounds)


def _share_contributions(plan: Plan, executor: Executor) -> dict[tuple[Any, ...], FloatArray]:
    """Return the contributions to groups known as probabilities, of the queries of all models.

    The contribution of a query depends on the others with a value, so those of two models can be
    subtracted only if they are made from the same queries. Empty where all are.
    """
    values: dict[tuple[Any, ...], dict[str, FloatArray]] = defaultdict(dict)
    groups: dict[tuple[Any, ...], Any] = {}
    for model_plan in plan.model_plans:
        place = locate(model_plan.data_context.keys)
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            by = metric.grouping.by if metric.grouping else ""
            if parse_uncertain_label(by) is None or not executor.has_succeeded(stage):
                continue
            queries, measured = map(executor.value, stage.inputs)
            for row in measured:
                quantity = (*place, metric.label, metric.cutoff, row.target)
                groups[quantity] = read_uncertain_groups(queries.labels, by)
                values[quantity][model_plan.model.label] = row.units.values
    shared: dict[tuple[Any, ...], FloatArray] = {}
    for (*keys, target), models in values.items():
        defined = ~np.isnan(np.stack([*models.values()]))
        if (defined == defined[0]).all():
            continue
        named = groups[*keys, target]
        for model, of_model in models.items():
            used = np.where(defined.all(axis=0), of_model, np.nan)
            columns = zip(named.names, measure_contributions(used, named).values.T, strict=True)
            shared |= {(model, *keys, name, target): column for name, column in columns}
    return shared


_Served: TypeAlias = Mapping[Place, tuple[Ids, BoolArray]]
"""The queries of each dataset, seed and fold, and which of them all models have a list for."""


def _find_served(plan: Plan, executor: Executor) -> _Served:
    served: dict[Place, tuple[Ids, BoolArray]] = {}
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
            ids = executor.value(context.queries).ids.ids
            served[locate(context.keys)] = ids, np.all(masks, axis=0)
    return served


def _select_served(
    measurements: Sequence[ModelMeasurement], served: _Served
) -> Iterator[ModelMeasurement]:
    """Yield the means over the queries that all models serve, of metrics that have others too.

    A metric has them for all seeds and folds of a dataset or for none, so that their means are of
    the same seeds and folds as those of all queries.
    """

    def is_of_queries(row: ModelMeasurement) -> bool:
        units = row.measurement.units
        if units is None or row.place not in served or row.metric.grouping is not None:
            return False
        return "lists" in row.metric.needs and np.array_equal(units.ids, served[row.place][0])

    whole = filter(is_of_queries, measurements)
    for rows in gather(whole, lambda row: (row.dataset, *row.metric_keys.values())).values():
        selected = [_restrict(row, served[row.place][1]) for row in rows]
        counts = [
            (new.measurement.n, old.measurement.n) for new, old in zip(selected, rows, strict=True)
        ]
        if any(n < total for n, total in counts) and any(n for n, _ in counts):
            yield from selected


def _restrict(row: ModelMeasurement, is_used: BoolArray) -> ModelMeasurement:
    whole = row.measurement
    units: Any = whole.units
    part = replace(units, values=np.where(is_used, units.values, np.nan))
    mean = Measurement.from_units(part, group=measures.SERVED, target=whole.target)
    mean = replace(mean, undefined=int(np.isnan(units.values[is_used]).sum()))
    if whole.own_interval:
        mean = replace(mean, ci_low=math.nan, ci_high=math.nan, own_interval=True)
    return replace(row, measurement=limit_interval(mean, row.bounds))


def _list_failed_values(plan: Plan, executor: Executor) -> list[FailedValue]:
    """Return each value of which a stage failed for a seed or fold, in the order of the plan."""
    keys = (
        (row.data_context.keys.dataset, row.model.label, metric.label, metric.cutoff)
        for row in plan.model_plans
        for metric, stage in zip(row.metrics, row.measures, strict=True)
        if not executor.has_succeeded(stage)
    )
    return [*dict.fromkeys(keys)]


# ---- groups and gaps over several seeds and folds ----


def _collect_groups(
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
    names = ("seed", "fold")
    return {name: measures.ALL for name in names if len({vars(row)[name] for row in measured}) > 1}


def pool_summaries(
    measured: Sequence[ModelMeasurement], varying: Mapping[str, Any]
) -> Iterator[ModelMeasurement]:
    """Yield each summary of groups of items over seeds and folds: that of the groups' means."""
    summaries = [row for row in measured if row.measurement.parts and row.metric.grouping is None]
    for rows in gather(summaries, lambda row: row.identity).values():
        folds, metric = [row.measurement for row in rows], rows[0].metric.plugin
        names = dict.fromkeys(name for fold in folds for name in fold.parts)
        size = min(next(iter(fold.parts.values())).size for fold in folds)
        undefined = np.full(size, np.nan)
        parts = [[fold.parts.get(name, undefined)[:size] for name in names] for fold in folds]
        means = _average_defined([np.stack(part, axis=1) for part in parts])
        values = metric.combine(means, means[0])
        replicates = values[1:] if values.size > 1 else _average_replicates(folds)
        value = replace(folds[0], value=float(values[0]), replicates=replicates, df=find_df(folds))
        low, high = estimate_interval([value], value.value)
        value = limit_interval(replace(value, ci_low=low, ci_high=high), rows[0].bounds)
        yield replace(rows[0], measurement=value, **varying)


def _pool_gaps(
    varying: Mapping[str, Any], plan: Plan, executor: Executor
) -> Iterator[ModelMeasurement]:
    """Yield each gap over several seeds and folds: that of the groups' means over them."""
    gaps = [spec for spec in plan.experiment.metrics if _get_gap(spec) not in {"", "groups"}]
    plans = gather(
        plan.model_plans, lambda each: (each.data_context.keys.dataset, each.model.label)
    )
    for spec, folds_of_model in product(gaps, plans.values()):
        for folds in _gather_folds([*_measure_groups(spec, folds_of_model, executor)]):
            grouping: Any = spec.grouping
            gap = GroupMeasurements(spec.name, grouping, spec.plugin.direction)
            seed = derive_seed(0, "bootstrap", folds[0].dataset)
            value = gap.pool([fold.measurement for fold in folds], seed)
            yield _make_measurement({**folds[0].fit_keys, **varying}, spec, value)


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


def _gather_folds(rows: Sequence[ModelMeasurement]) -> Iterable[list[ModelMeasurement]]:
    return gather(
        rows,
        lambda row: (
            *(row.dataset, row.model, row.metric.label, row.metric.cutoff),
            row.measurement.target,
        ),
    ).values()


def _pool(
    folds: Sequence[ModelMeasurement], varying: Mapping[str, Any]
) -> Iterator[ModelMeasurement]:
    groups = pool_groups([fold.measurement for fold in folds])
    if _get_gap(folds[0].metric) == "groups":
        groups[0] = replace(groups[0], contrasts=tuple(_compare(groups, folds)))
    for group in groups:
        limited = limit_interval(group, folds[0].bounds)
        yield replace(folds[0], measurement=limited, **varying)


def _compare(groups: Sequence[Measurement], folds: Sequence[ModelMeasurement]) -> list[Contrast]:
    grouping: Any = folds[0].metric.grouping
    # With a reference group, it is the second side of each test in each fold.
    tests = [test for fold in folds for test in fold.measurement.contrasts]
    reference = tests[0].b if grouping.reference_group and tests else ""
    if parse_uncertain_label(grouping.by) is not None:
        return compare_pooled_contributions(groups, reference=reference)
    named = [*dict.fromkeys((test.a, test.b) for test in tests)] if grouping.pairs else []
    least = grouping.min_group
    return compare_pooled_groups(groups, min_group=least, reference=reference, named=named)


# ---- the table of values ----


def build_metrics_table(measurements: Sequence[ModelMeasurement]) -> pd.DataFrame:
    """Return ``metrics.csv``: one row per value, then the means over folds, seeds and datasets."""
    singles = [row for row in measurements if not row.is_pooled]
    rows, means = [row.row() for row in singles], list[dict[str, Any]]()
    if varying := _list_varying(singles):
        by_identity = gather(measurements, lambda row: row.identity)
        means = [_average_folds(each, varying) for each in by_identity.values()]
    over_datasets: list[dict[str, Any]] = []
    if len({row.dataset for row in singles}) > 1:
        keys = [*measures.FIT_COLUMNS, *measures.METRIC_KEY_COLUMNS][1:]
        bounds = {row.metric.label: row.bounds for row in measurements}
        by_keys = gather(means or rows, lambda row: tuple(row[name] for name in keys))
        over_datasets = [_average_datasets(each, bounds) for each in by_keys.values()]
        over_datasets += _pool_datasets(singles)
    return measures.METRICS.build([*rows, *means, *over_datasets])


def _average_rows(rows: Sequence[dict[str, Any]], fixed: dict[str, Any]) -> dict[str, Any]:
    """Return the mean and spread of the values of rows; ``fixed`` says over what."""
    summary = Measurement.from_values(np.array([row["value"] for row in rows], dtype=np.float64))
    return rows[0] | {name: vars(summary)[name] for name in measures.VALUE_COLUMNS} | fixed


def _average_folds(rows: Sequence[ModelMeasurement], varying: dict[str, Any]) -> dict[str, Any]:
    """Return the mean over folds and seeds with the interval of ``average_folds``.

    A gap is not the mean of gaps, which have no sign, but that of the groups' means, and a summary
    of groups of items that of the groups' means.
    """
    singles, last = [row for row in rows if not row.is_pooled], rows[-1].measurement
    mean = _average_rows([row.row() for row in singles], varying)
    if rows[-1].is_pooled:
        return mean | {"value": last.value, "ci_low": last.ci_low, "ci_high": last.ci_high}
    bounds = rows[0].bounds
    ends = estimate_interval([row.measurement for row in rows], mean["value"], bounds)
    low, high = measures.limit_ends(ends, bounds, mean["value"])
    return mean | {"ci_low": low, "ci_high": high}


def _average_datasets(
    rows: Sequence[dict[str, Any]], bounds: Mapping[str, Bounds]
) -> dict[str, Any]:
    """Return the mean over datasets, whose interval is within the range of the metric."""
    mean = _average_rows(rows, {"dataset": measures.ALL})
    within, ends = bounds[mean["metric"]], (mean["ci_low"], mean["ci_high"])
    if mean["n"] < _MIN_DATASETS:
        return mean | {"ci_low": math.nan, "ci_high": math.nan}
    ends = measures.widen_ends(ends, within, mean["value"], mean["n"])
    low, high = measures.limit_ends(ends, within, mean["value"])
    return mean | {"ci_low": low, "ci_high": high}


def _pool_datasets(measurements: Sequence[ModelMeasurement]) -> list[dict[str, Any]]:
    """Return the values of all datasets pooled, for metrics whose counts can be added."""
    counted = [row for row in measurements if row.measurement.counts is not None]

    def identify(row: ModelMeasurement) -> tuple[Any, ...]:
        metric, k, group, _ = row.metric_keys.values()
        return row.model, row.seed, row.fold, metric, k, group

    group_counts = {
        key: {row.dataset: row.measurement.counts for row in rows}
        for key, rows in gather(counted, identify).items()
    }
    pooled = []
    for rows in gather(counted, lambda row: (*identify(row), row.measurement.target)).values():
        template = rows[0]
        if isinstance(metric := template.metric.plugin, Pools):
            counts = {row.dataset: row.measurement.counts for row in rows}
            measurement = Measurement(
                metric.of_counts(_sum_counts(counts, group_counts[identify(template)])),
                n=sum(row.measurement.n for row in rows),
                undefined=sum(row.measurement.undefined for row in rows),
            )
            together = replace(template, dataset=measures.POOLED, measurement=measurement)
            pooled.append(together.row() | template.metric_keys)
    return pooled


def _sum_counts(
    counts: Mapping[str, FloatArray | None], group_counts: Mapping[str, FloatArray | None]
) -> FloatArray:
    """Return the sum of the counts of a target over the datasets.

    Counts of one row are added. Counts of two rows hold the counts of the target, then the totals
    that all targets of a group share, such as the number of recommended items: a dataset without
    the target adds 0 to the first row and its totals to the second.

    Args:
        counts: The counts of each dataset that has the target.
        group_counts: The counts of any target of the same group, for each dataset.

    >>> _sum_counts({"a": np.array([[1.0], [4.0]])}, {"b": np.array([[9.0], [6.0]])}).tolist()
    [[1.0], [10.0]]
    """
    total = np.sum([array for array in counts.values() if array is not None], axis=0)
    if total.ndim == 2:
        for dataset, array in group_counts.items():
            if dataset not in counts and array is not None:
                total[1] += array[1]
    return np.asarray(total, dtype=np.float64)


# ---- the values that models are compared by ----


def _collect_estimates(measurements: Sequence[ModelMeasurement]) -> list[SystemEstimates]:
    singles = [row for row in measurements if not row.is_pooled]
    by_fold = gather(singles, lambda row: (row.place, *row.metric_keys.values()))
    estimates = [_build_estimates(_gather_models(rows)) for rows in by_fold.values()]
    varying = _list_varying(measurements)
    pooled = {row.identity: row for row in measurements if row.is_pooled}
    quantities = gather(singles, lambda row: (row.dataset, *row.metric_keys.values()))
    for rows in quantities.values() if varying else ():
        models = _gather_models(rows)
        n_folds = max(map(len, models.values()))
        complete = {name: folds for name, folds in models.items() if len(folds) == n_folds}
        if rows[0].identity in pooled:
            complete = {name: [pooled[folds[0].identity]] for name, folds in complete.items()}
        estimates.append(_build_estimates(complete, **varying))
    return estimates


def _gather_models(rows: Sequence[ModelMeasurement]) -> dict[str, list[ModelMeasurement]]:
    return gather(rows, lambda row: row.model)


def _build_estimates(
    models: Mapping[str, Sequence[ModelMeasurement]], **varying: str
) -> SystemEstimates:
    """Return the values of models on one quantity, each in one fold and seed or in several."""
    row = next(iter(models.values()))[0]
    place = dict(zip(("dataset", "seed", "fold"), row.place, strict=True))
    systems = [[_select_compared(fold) for fold in folds] for folds in models.values()]
    if not all(map(_share_units, zip(*systems, strict=False))):
        message = f"{row.metric.label} was measured on different units for {', '.join(models)}"
        raise UnalignedScores(message, remedy="measure all models on one split")
    measurements = [measurement for folds in systems for measurement in folds]
    replicates = _stack([_average_replicates(folds) for folds in systems])
    units = [pool_units(folds) for folds in systems]
    return SystemEstimates(
        systems=tuple(models),
        values=_stack([of_model and of_model.values for of_model in units]),
        points=np.array([_average_defined([fold.value for fold in folds]) for folds in systems]),
        replicates=replicates,
        keys={**place, **varying, **row.metric_keys},
        n=max(each.n for each in measurements) if replicates is not None else None,
        df=find_df(measurements),
        ids=units[0] and units[0].ids,
        parts=_stack_parts([folds[0] for folds in systems]) if len(systems[0]) == 1 else None,
    )


def _stack_parts(gaps: Sequence[Measurement]) -> FloatArray | None:
    """Return the means of the groups of each gap, and their samples.

    None if the groups of the gaps differ, or one has no value, also on a sample of the queries.
    """
    names = gaps[0].parts.keys()
    if not names or any(gap.parts.keys() != names or gap.replicates is not None for gap in gaps):
        return None
    parts = np.stack([np.stack([gap.parts[name] for name in names]) for gap in gaps])
    return None if np.isnan(parts).any() else parts


def _select_compared(row: ModelMeasurement) -> Measurement:
    """Return a measurement with the values of the units that models are compared by."""
    if (units := row.measurement.units) is None:
        return row.measurement
    values = units.compared if row.compared is None else row.compared
    return replace(row.measurement, units=replace(units, values=values))


def _stack(rows: Sequence[FloatArray | None]) -> FloatArray | None:
    arrays = [row for row in rows if row is not None]
    return np.stack(arrays) if len(arrays) == len(rows) else None


# ---- warnings ----


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
            and measured.metric.needs >= {"lists", "test"}
            and not math.isnan(measured.measurement.value)
        ]
        if isinstance(model.plugin, ChecksFiles) and values and not any(values):
            warn(
                f"{model.label}: every accuracy metric is exactly 0. Were these lists made for "
                "this split? Give the one they were made for: "
                "split: {name: given, train: train.csv, test: test.csv}"
            )
