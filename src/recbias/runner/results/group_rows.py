"""The rows of ``groups.csv``: the groups of queries that a run compares, over seeds and folds.

Two groups are compared as two models are: by the mean of each unit over seeds and folds. A test
within one seed answers another question, and its difference may have another sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from recbias.config.plugin_spec import PluginSpec
from recbias.core.measurements.columns import ALL, METRICS_COLUMNS
from recbias.core.measurements.ranges import limit_interval
from recbias.core.measurements.scores import Contrast, Measurement
from recbias.core.queries.uncertain_groups import parse_uncertain_label
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import Plan
from recbias.runner.results.metric_rows import ModelMeasurement, make_measurement
from recbias.runner.stages.grouping import GroupMeasurements
from recbias.statistics.group_pooling import compare_pooled_groups, pool_groups
from recbias.statistics.uncertain.group_means import compare_pooled_contributions


def collect_groups(
    measured: Sequence[ModelMeasurement], plan: Plan, executor: Executor
) -> list[ModelMeasurement]:
    """Return the groups of each metric by group, also those of a ``gap: difference`` alone.

    With several seeds or folds a group has the mean of each of its units, and the tests of these
    means are contrasts of the first group. The test of all groups belongs to the metric with
    ``gap: difference``; where another metric has the rows of the groups, it stands in a row
    without a group. With one seed and fold there are no contrasts: ``measured`` has them.
    """
    rows = [row for row in measured if _get_gap(row.metric) == "groups"]
    listed = {_identify(row.metric) for row in rows}
    gaps = [spec for spec in plan.experiment.metrics if _get_gap(spec) == "difference"]
    alone = [spec for spec in gaps if _identify(spec) not in listed]
    rows += _measure_groups(alone, plan, executor)
    varying = [name for name in ("seed", "fold") if len({vars(row)[name] for row in measured}) > 1]
    if not varying:
        return [replace(row, measurement=replace(row.measurement, contrasts=())) for row in rows]
    beside = {_identify(spec): spec for spec in gaps if spec not in alone}
    return [
        pooled
        for folds in _gather_folds(rows)
        for pooled in _pool(folds, varying, beside.get(_identify(folds[0].metric)))
    ]


def build_groups_table(groups: Sequence[ModelMeasurement]) -> pd.DataFrame:
    """Return ``groups.csv``, with the columns of ``metrics.csv``."""
    rows = [group.row() for group in groups if group.measurement.group]
    return pd.DataFrame(rows, columns=list(METRICS_COLUMNS)).astype({"k": "Int64"})


def _get_gap(metric: PluginSpec) -> str:
    return metric.grouping.gap if metric.grouping else ""


def _identify(metric: PluginSpec) -> tuple[Any, ...]:
    """Return what metrics of the same groups share."""
    grouping = metric.grouping
    by = (grouping.by, grouping.min_group) if grouping else ()
    return (metric.name, repr(metric.parameters), *by)


def _measure_groups(
    metrics: Sequence[PluginSpec], plan: Plan, executor: Executor
) -> Iterator[ModelMeasurement]:
    """Yield the groups of gaps, from the stored values of the queries."""
    for model_plan in plan.model_plans:
        keys = model_plan.data_context.keys
        fit_keys = (keys.dataset, model_plan.model.label, keys.seed or 0, keys.fold or 0)
        for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True):
            if metric.grouping is None or metric not in metrics:
                continue
            if not executor.has_succeeded(stage):
                continue
            queries, values = map(executor.value, stage.inputs)
            group_values = GroupMeasurements(metric.name, replace(metric.grouping, gap=""))
            for group in group_values(queries, values):
                yield make_measurement(fit_keys, metric, group)
            executor.forget(stage.inputs[1:])


def _gather_folds(rows: Sequence[ModelMeasurement]) -> list[list[ModelMeasurement]]:
    """Return the groups of all seeds and folds of each model, metric and target."""
    folds: dict[tuple[Any, ...], list[ModelMeasurement]] = defaultdict(list)
    for row in rows:
        key = (row.dataset, row.model, row.metric.label, row.metric.cutoff, row.measurement.target)
        folds[key].append(row)
    return [*folds.values()]


def _pool(
    folds: Sequence[ModelMeasurement], varying: Sequence[str], beside: PluginSpec | None
) -> Iterator[ModelMeasurement]:
    """Yield the pooled groups, and the test of all of them for the metric ``beside`` theirs."""
    row = replace(folds[0], **dict.fromkeys(varying, ALL))  # type: ignore[arg-type]
    groups = pool_groups([fold.measurement for fold in folds])
    groups[0] = replace(groups[0], contrasts=tuple(_compare(groups, row.metric, folds)))
    for group in groups:
        yield replace(row, measurement=limit_interval(group, row.bounds))
    if beside is not None and (tests := _compare(groups, beside, folds)):
        test = Measurement(tests[0].difference, tests[0].n, 0, target=groups[0].target)
        yield replace(row, metric=beside, measurement=replace(test, contrasts=tuple(tests)))


def _compare(
    groups: Sequence[Measurement], metric: PluginSpec, folds: Sequence[ModelMeasurement]
) -> list[Contrast]:
    if metric.grouping is None:
        return []
    is_uncertain = parse_uncertain_label(metric.grouping.by) is not None
    # With a reference group, it is the second side of each test in each fold.
    tests = [test for fold in folds for test in fold.measurement.contrasts]
    reference = tests[0].b if metric.grouping.reference_group and tests else ""
    gap: Literal["groups", "difference"]
    gap = "groups" if metric.grouping.gap == "groups" else "difference"
    if is_uncertain:
        is_tested = gap == "groups" or len(groups) == 2
        return compare_pooled_contributions(groups, reference=reference) if is_tested else []
    least = metric.grouping.min_group
    return compare_pooled_groups(groups, gap, min_group=least, reference=reference)
