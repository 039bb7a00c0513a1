"""Stored measurements as the rows of ``metrics.csv`` and ``per_unit.parquet``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.measurements.columns import (
    ALL,
    FIT_COLUMNS,
    METRIC_KEY_COLUMNS,
    METRICS_COLUMNS,
    POOLED,
    VALUE_COLUMNS,
)
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.protocols import Pools
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import Plan
from recbias.runner.results.parquet_writer import coded, constant
from recbias.runner.results.pooled_counts import total_counts
from recbias.runner.results.pooling import pooled_interval
from recbias.runner.stages.requirements import cutoff

FEWEST_DATASETS = 3
"""So many datasets make an interval of their mean."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One measurement and where it belongs.

    Args:
        dataset: Label of the dataset.
        model: Label of the model.
        seed: The experiment seed.
        fold: The fold, from 1.
        metric: The metric as the spec chose it.
        measurement: The figure.
    """

    dataset: str
    model: str
    seed: int
    fold: int
    metric: PluginSpec
    measurement: Measurement

    @property
    def what(self) -> dict[str, Any]:
        """The columns that say which figure of a model it is."""
        found = self.measurement
        names = (self.metric.label, cutoff(self.metric), found.group, found.target)
        return dict(zip(METRIC_KEY_COLUMNS, names, strict=True))

    def row(self) -> dict[str, Any]:
        """Return its row of ``metrics.csv``."""
        found = self.measurement
        figures = {name: vars(found)[name] for name in VALUE_COLUMNS}
        where = {name: vars(self)[name] for name in FIT_COLUMNS}
        return {**where, **self.what, **figures}


def collect(plan: Plan, walk: Executor) -> list[Measured]:
    """Return every measurement that was made, in the order of the plan."""
    found = []
    for chain in plan.model_plans:
        keys = chain.data_context.keys
        where = (keys.dataset, chain.model.label, keys.seed or 0, keys.fold or 0)
        for metric, stage in zip(chain.metrics, chain.measures, strict=True):
            record = walk.records.get(stage.digest)
            if record is not None and record.failure is None:
                found += [Measured(*where, metric, each) for each in walk.value(stage)]
        walk.forget(chain.measures)
    return found


def metrics_table(measured: Sequence[Measured]) -> pd.DataFrame:
    """Return ``metrics.csv``: one row a figure, then the means over folds, seeds and datasets."""
    rows = pd.DataFrame([each.row() for each in measured], columns=list(METRICS_COLUMNS))
    rows["k"] = rows["k"].astype("Int64")
    means = [*_means(rows, measured), *_pooled(measured)]
    if means:
        return pd.concat([rows.astype({"seed": object, "fold": object}), *means])
    return rows


def _means(rows: pd.DataFrame, measured: Sequence[Measured]) -> list[pd.DataFrame]:
    if rows.empty:
        return []
    several = {name: len(set(rows[name])) > 1 for name in ("dataset", "seed", "fold")}
    found = []
    if several["seed"] or several["fold"]:
        over = [name for name in ("seed", "fold") if several[name]]
        found.append(_with_intervals(_mean(rows, over), measured))
    if several["dataset"]:
        base = found[0] if found else rows
        found.append(_mean(base, ["dataset"]))
    return found


def _pooled(measured: Sequence[Measured]) -> list[pd.DataFrame]:
    """Return the figures over all datasets together, of metrics whose counts add up."""
    order = list(dict.fromkeys(each.dataset for each in measured))
    held = [each for each in measured if each.measurement.counts is not None]
    if len(order) < 2 or not held:
        return []
    places: dict[tuple[Any, ...], list[Measured]] = defaultdict(list)
    for each in held:
        places[each.model, each.seed, each.fold, *each.what.values()].append(each)
    rows = [_pooled_row(found, held) for found in places.values()]
    table = pd.DataFrame([row for row in rows if row], columns=list(METRICS_COLUMNS))
    table["k"] = table["k"].astype("Int64")
    return [table] if len(table) else []


def _mean(rows: pd.DataFrame, over: Sequence[str]) -> pd.DataFrame:
    """Return the mean of each figure over some columns, and the spread of what it is of.

    Over three or more datasets it has the t interval that takes them for a sample, as cities are;
    over folds and seeds it has none here: they share their data, and their units say more.
    """
    kept = [name for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS) if name not in over]
    means = []
    for key, part in rows.groupby(kept, sort=False, dropna=False):
        summary = Measurement.from_values(part["value"].to_numpy(dtype=np.float64))
        named = dict(zip(kept, key, strict=True)) | dict.fromkeys(over, ALL)
        figure = {name: vars(summary)[name] for name in VALUE_COLUMNS}
        if "dataset" not in over or summary.n < FEWEST_DATASETS:
            figure |= {"ci_low": math.nan, "ci_high": math.nan}
        means.append({**named, **figure})
    table = pd.DataFrame(means, columns=list(METRICS_COLUMNS))
    table["k"] = table["k"].astype("Int64")
    return table


def _with_intervals(means: pd.DataFrame, measured: Sequence[Measured]) -> pd.DataFrame:
    """Return means over folds and seeds with the interval of their units' own means."""
    parts: dict[tuple[Any, ...], list[Measurement]] = defaultdict(list)
    for each in measured:
        parts[each.dataset, each.model, *each.what.values()].append(each.measurement)
    ends = [
        pooled_interval(found, float(value))
        for found, value in zip(parts.values(), means["value"], strict=True)
    ]
    return means.assign(ci_low=[low for low, _ in ends], ci_high=[high for _, high in ends])


def _pooled_row(found: Sequence[Measured], held: Sequence[Measured]) -> dict[str, Any]:
    """Return the row of one figure over all datasets together; empty where it is not defined."""
    first, plugin = found[0], found[0].metric.plugin
    if not isinstance(plugin, Pools):
        return {}
    near = [each for each in held if _beside(each, first)]
    counts = total_counts(
        {each.dataset: each.measurement.counts for each in found},
        {each.dataset: each.measurement.counts for each in near},
    )
    value = plugin.of_counts(counts)
    n = sum(each.measurement.n for each in found)
    figure = Measurement(value, n, sum(each.measurement.undefined for each in found))
    where = {"dataset": POOLED, "model": first.model, "seed": first.seed, "fold": first.fold}
    return {**where, **first.what, **{name: vars(figure)[name] for name in VALUE_COLUMNS}}


def _beside(one: Measured, other: Measured) -> bool:
    """Return whether two figures differ in their dataset and target only."""
    names = ("metric", "k", "group")
    return (one.model, one.seed, one.fold) == (other.model, other.seed, other.fold) and all(
        one.what[name] == other.what[name] for name in names
    )


def per_unit_tables(measured: Iterable[Measured]) -> Iterator[dict[str, Any]]:
    """Yield ``per_unit.parquet`` piece by piece: a measurement that has units is a piece."""
    for each in measured:
        units = each.measurement.units
        if units is not None:
            yield _units_piece(each, units)


def _units_piece(each: Measured, units: UnitScores) -> dict[str, Any]:
    n, what = units.values.size, each.what
    return {
        "dataset": constant(each.dataset, n),
        "model": constant(each.model, n),
        "seed": np.full(n, each.seed),
        "fold": np.full(n, each.fold),
        "unit": constant(units.unit, n),
        "unit_id": coded(np.arange(n), units.ids),
        "metric": constant(what["metric"], n),
        "k": np.full(n, math.nan if what["k"] is None else what["k"], dtype=np.float64),
        "group": constant(what["group"], n),
        "target": constant(what["target"], n),
        "value": units.values,
    }
