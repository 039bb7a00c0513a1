"""What re-ranking costs and gives: the rows of ``tradeoffs.csv``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.measurements.columns import TRADEOFF_COLUMNS
from recbias.core.measurements.metric_names import format_metric
from recbias.core.measurements.scores import Direction
from recbias.runner.results.metric_rows import ModelMeasurement
from recbias.runner.results.significance import collect_estimates
from recbias.runner.results.version_prices import (
    VersionDifference,
    average_shared_units,
    measure_price,
)
from recbias.statistics.compared_estimates import SystemEstimates

ACCURACY_NEEDS = frozenset({"lists", "test"})
"""What the metrics of accuracy need."""


def write_tradeoffs(
    folder: Path,
    models: Sequence[PluginSpec],
    metrics: Sequence[PluginSpec],
    measurements: Sequence[ModelMeasurement],
) -> None:
    """Write ``tradeoffs.csv`` if a model of the run is re-ranked."""
    if any(model.reranked for model in models):
        table = build_tradeoffs(models, metrics, measurements)
        table.to_csv(folder / "tradeoffs.csv", index=False, lineterminator="\n")


def build_tradeoffs(
    models: Sequence[PluginSpec],
    metrics: Sequence[PluginSpec],
    measurements: Sequence[ModelMeasurement],
) -> pd.DataFrame:
    """Return a row for each re-ranked model, metric of accuracy and metric of bias.

    A metric of accuracy needs lists and test items only, and higher is better; the others that
    have a better direction are of bias. ``accuracy_lost`` is the accuracy of the model minus that
    of the re-ranked one. ``bias_removed`` is the reduction of the bias, of a metric of which 0 is
    best that of its absolute value. ``price`` is their ratio, NaN unless bias is removed. All
    values are means over the ``n`` units for which both metrics are defined for both models, and
    the intervals are of the differences by unit. Those of a metric of the whole set of lists are
    of its bootstrap samples, and the price has that of both metrics on the same samples; none for
    a gap between groups, whose samples are others.
    """
    by_label = {(metric.label, metric.cutoff): metric for metric in metrics}
    estimates_by_run: dict[tuple[Any, ...], list[SystemEstimates]] = defaultdict(list)
    for estimate in collect_estimates([row for row in measurements if not row.missing]):
        estimates_by_run[
            tuple(estimate.keys[name] for name in ("dataset", "seed", "fold"))
        ].append(estimate)
    rows: list[dict[str, Any]] = []
    for run_keys, estimates in estimates_by_run.items():
        pairs = [(estimate, by_label[_identify(estimate)]) for estimate in estimates]
        accuracies = [estimate for estimate, metric in pairs if is_accuracy(metric)]
        biases = [
            (estimate, metric)
            for estimate, metric in pairs
            if not is_accuracy(metric)
            and metric.direction != "none"
            and not estimate.keys["group"]
        ]
        for model in filter(lambda model: model.reranked, models):
            for accuracy in (estimate for estimate in accuracies if not estimate.keys["group"]):
                for bias, metric in biases:
                    rows += _compare(run_keys, model, accuracy, bias, metric)
    return pd.DataFrame(rows, columns=list(TRADEOFF_COLUMNS))


def is_accuracy(metric: PluginSpec) -> bool:
    """Return whether a metric is of accuracy, and not of a group of queries."""
    needs, direction = frozenset(metric.needs), metric.direction
    return needs == ACCURACY_NEEDS and direction == "higher" and metric.grouping is None


def _identify(estimate: SystemEstimates) -> tuple[Any, Any]:
    return estimate.keys["metric"], estimate.keys["k"]


def _format_title(estimate: SystemEstimates) -> str:
    metric, k = _identify(estimate)
    return format_metric(str(metric), {"k": k})


def _compare(
    run_keys: tuple[Any, ...],
    model: PluginSpec,
    accuracy: SystemEstimates,
    bias: SystemEstimates,
    metric: PluginSpec,
) -> Iterator[dict[str, Any]]:
    """Yield the row of a re-ranked model, if both metrics are there for it and its model."""
    if model.reranked is None:
        return
    base, reranker = model.reranked.base, model.reranked.reranker
    labels = {base.label, model.label}
    if not labels <= set(accuracy.systems) & set(bias.systems):
        return
    at, bias_at = (
        [estimates.systems.index(label) for label in (base.label, model.label)]
        for estimates in (accuracy, bias)
    )
    systems = [(accuracy, row) for row in at] + [(bias, row) for row in bias_at]
    accuracy_before, accuracy_after, before, after = average_shared_units(systems)
    signs = _orient(before, after, metric.direction)
    lost = VersionDifference(accuracy, (at[0], at[1]))
    removed = VersionDifference(bias, (bias_at[0], bias_at[1]), signs)
    columns = measure_price(lost, removed, shares_samples=metric.grouping is None)
    dial = getattr(reranker.plugin, "dial", "")
    value = reranker.parameters.get(dial) if model.tune is None else None
    yield {
        **dict(zip(("dataset", "seed", "fold"), run_keys, strict=True)),
        "model": model.label,
        "baseline": base.label,
        "reranker": reranker.name,
        "setting": dial,
        "strength": math.nan if value is None else value,
        "accuracy": _format_title(accuracy),
        "bias": _format_title(bias),
        "target": bias.keys["target"],
        "accuracy_before": accuracy_before,
        "accuracy_after": accuracy_after,
        "bias_before": before,
        "bias_after": after,
        **columns,
    }


def _orient(before: float, after: float, direction: Direction) -> tuple[float, float]:
    """Return the signs of the values before and after that make less bias a smaller value."""
    if direction == "zero":
        return math.copysign(1.0, before), math.copysign(1.0, after)
    return (-1.0, -1.0) if direction == "higher" else (1.0, 1.0)
