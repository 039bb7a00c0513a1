"""Accuracy lost, bias removed and price of a re-ranked model, with intervals.

What re-ranking costs and gives: the rows of ``tradeoffs.csv``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from recbias.config.experiment import PluginSpec
from recbias.core.dataset import FloatArray, Vocabulary
from recbias.core.measures import TRADEOFFS, Direction, format_metric
from recbias.runner.results import ModelMeasurement, gather
from recbias.runner.significance import collect_estimates
from recbias.runner.stages import derive_bootstrap_seed
from recbias.statistics.bootstrap import ROUNDING, resample_sums
from recbias.statistics.compare import SystemEstimates
from recbias.statistics.intervals import (
    compute_sample_interval,
    estimate_ratio,
    estimate_resampled_ratio,
    t_interval,
)


@dataclass(frozen=True, eq=False)
class VersionDifference:
    """The value of a model minus that of its re-ranked version, in one metric.

    Args:
        estimates: Those of all models.
        rows: The rows of the model and of the version.
        signs: What both values are multiplied by before they are subtracted.
    """

    estimates: SystemEstimates
    rows: tuple[int, int]
    signs: tuple[float, float] = (1.0, 1.0)

    @property
    def point(self) -> float:
        """The difference of the estimates."""
        return float(self._subtract(self.estimates.points))

    @property
    def scale(self) -> float:
        """The larger of the absolute estimates, NaN if none is defined."""
        return float(np.fmax.reduce(np.abs(self.estimates.points[list(self.rows)])))

    @property
    def values(self) -> FloatArray | None:
        """The difference by unit, ``float64[u]``; None without units."""
        values = self.estimates.values
        return None if values is None else self._subtract(values)

    @property
    def replicates(self) -> FloatArray | None:
        """The difference by bootstrap sample, ``float64[b]``; None without samples."""
        replicates = self.estimates.replicates
        return None if replicates is None else self._subtract(replicates)

    def _subtract(self, values: FloatArray) -> FloatArray:
        before, after = (values[row] for row in self.rows)
        return np.asarray(self.signs[0] * before - self.signs[1] * after)


def average_shared_units(pairs: Sequence[tuple[SystemEstimates, int]]) -> list[float]:
    """Return the value of each system, over the units for which all of them are defined.

    They are the estimates if one has no units, or other units.
    """
    rows = [None if table.values is None else table.values[row] for table, row in pairs]
    values = [row for row in rows if row is not None]
    if len(values) < len(rows) or len({row.size for row in values}) > 1:
        return [float(table.points[row]) for table, row in pairs]
    shared = ~np.isnan(values).any(axis=0)
    return [float(row[shared].mean()) if shared.any() else math.nan for row in values]


def measure_price(
    lost: VersionDifference, removed: VersionDifference, *, shares_samples: bool
) -> dict[str, float]:
    """Return what is lost and removed and the price, with intervals, as ``tradeoffs.csv`` has it.

    Args:
        lost: The difference in accuracy, by unit.
        removed: The difference in bias.
        shares_samples: Whether the bootstrap samples of the bias are of all queries
            (``WholeSet``), so that the accuracy can be resampled with them.
    """
    lost_values, removed_values, samples = lost.values, removed.values, removed.replicates
    if lost_values is None:
        return _measure_points(lost.point, removed.point, removed.scale)
    if removed_values is not None and lost_values.size == removed_values.size:
        return _measure_units(lost_values, removed_values, removed.scale)
    columns = _measure_points(lost.point, removed.point, removed.scale)
    columns |= _name_ends("accuracy_lost", _find_t_ends(lost_values))
    if samples is None:
        return columns
    df = removed.estimates.df
    ends = compute_sample_interval(removed.point, samples, df=df)
    columns |= _name_ends("bias_removed", ends)
    if not shares_samples or math.isnan(columns["price"]):
        return columns
    joint = resample_mean(lost, removed.estimates.n or 0, samples.size)
    if joint is None:
        return columns
    both = np.stack([joint, samples])
    price = estimate_resampled_ratio(lost.point, removed.point, both, df=df)
    return columns | _name_ends("price", price[1:])


def _measure_units(lost: FloatArray, removed: FloatArray, scale: float) -> dict[str, float]:
    defined = ~np.isnan(lost) & ~np.isnan(removed)
    lost, removed = lost[defined], removed[defined]
    means = [float(values.mean()) if values.size else math.nan for values in (lost, removed)]
    columns = _measure_points(means[0], means[1], scale) | {"n": int(defined.sum())}
    columns |= _name_ends("accuracy_lost", _find_t_ends(lost))
    columns |= _name_ends("bias_removed", _find_t_ends(removed))
    if not math.isnan(columns["price"]):
        columns |= _name_ends("price", estimate_ratio(lost, removed)[1:])
    return columns


def _measure_points(lost: float, removed: float, scale: float) -> dict[str, float]:
    """Return what is lost and removed, and the price, undefined unless bias is removed."""
    price = lost / removed if removed > ROUNDING * scale else math.nan
    return {"accuracy_lost": lost, "bias_removed": removed, "price": price}


def _find_t_ends(values: FloatArray) -> tuple[Any, Any]:
    values = values[~np.isnan(values)]
    if values.size < 2:
        return math.nan, math.nan
    return t_interval(values.mean(), values.std(ddof=1), values.size)


def _name_ends(name: str, ends: Sequence[Any]) -> dict[str, float]:
    return {f"{name}_low": float(ends[0]), f"{name}_high": float(ends[1])}


def resample_mean(lost: VersionDifference, n_rows: int, n_samples: int) -> FloatArray | None:
    """Return the mean difference on the bootstrap samples of metrics of the whole set of lists.

    They sample all queries, or those with a defined value; None if ``n_rows`` is the number of
    neither, or if the queries are not known.
    """
    from scipy.sparse import csr_array

    values, ids = lost.values, lost.estimates.ids
    if values is None or ids is None:
        return None
    is_defined = ~np.isnan(values)
    if n_rows not in {values.size, int(is_defined.sum())} or not is_defined.any():
        return None
    columns = np.stack([np.where(is_defined, values, 0.0), is_defined], axis=1)
    rows = csr_array(columns if n_rows == values.size else columns[is_defined])
    seed = derive_bootstrap_seed(Vocabulary(np.array(ids, dtype=object)))
    sums = np.concatenate([*resample_sums(rows, n_samples, seed)])
    undefined = np.full(n_samples, np.nan)
    return np.asarray(np.divide(sums[:, 0], sums[:, 1], out=undefined, where=sums[:, 1] > 0))


def write_tradeoffs(
    folder: Path,
    models: Sequence[PluginSpec],
    metrics: Sequence[PluginSpec],
    measurements: Sequence[ModelMeasurement],
) -> None:
    """Write ``tradeoffs.csv`` if a model of the run is re-ranked.

    It has a row for each re-ranked model, metric of accuracy and metric of bias.
    """
    reranked = [model for model in models if model.reranked]
    if not reranked:
        return
    by_label = {(metric.label, metric.cutoff): metric for metric in metrics}
    estimates = collect_estimates([row for row in measurements if not row.missing])
    rows: list[dict[str, Any]] = []
    names = ("dataset", "seed", "fold")
    places = gather(estimates, lambda each: tuple(each.keys[name] for name in names))
    for of_place in places.values():
        overall = [
            (each, by_label[_identify(each)]) for each in of_place if not each.keys["group"]
        ]
        accuracies = [each for each, metric in overall if _is_accuracy(metric)]
        biases = [
            (each, metric)
            for each, metric in overall
            if not _is_accuracy(metric) and metric.direction != "none"
        ]
        for model, accuracy, bias in product(reranked, accuracies, biases):
            rows += _compare(model, accuracy, *bias)
    TRADEOFFS.write(folder, rows)


def _is_accuracy(metric: PluginSpec) -> bool:
    """Return whether a metric is of accuracy, and not of a group of queries."""
    is_of_hits = metric.needs == {"lists", "test"} and metric.direction == "higher"
    return is_of_hits and metric.grouping is None


def _identify(estimate: SystemEstimates) -> tuple[Any, Any]:
    return estimate.keys["metric"], estimate.keys["k"]


def _format_title(estimate: SystemEstimates) -> str:
    metric, k = _identify(estimate)
    return format_metric(str(metric), {"k": k})


def _compare(
    model: PluginSpec, accuracy: SystemEstimates, bias: SystemEstimates, metric: PluginSpec
) -> Iterator[dict[str, Any]]:
    """Yield the row of a re-ranked model, if both metrics are there for it and its model."""
    reranked: Any = model.reranked
    base, reranker = reranked.base, reranked.reranker
    labels = (base.label, model.label)
    if not {*labels} <= {*accuracy.systems} & {*bias.systems}:
        return
    at, bias_at = (
        (estimates.systems.index(labels[0]), estimates.systems.index(labels[1]))
        for estimates in (accuracy, bias)
    )
    systems = [(accuracy, row) for row in at] + [(bias, row) for row in bias_at]
    accuracy_before, accuracy_after, before, after = average_shared_units(systems)
    lost = VersionDifference(accuracy, at)
    removed = VersionDifference(bias, bias_at, _orient(before, after, metric.direction))
    dial = getattr(reranker.plugin, "dial", "")
    value = reranker.parameters.get(dial) if model.tune is None else None
    yield {
        **{name: bias.keys[name] for name in ("dataset", "seed", "fold", "target")},
        "model": model.label,
        "baseline": base.label,
        "reranker": reranker.name,
        "setting": dial,
        "strength": math.nan if value is None else value,
        "accuracy": _format_title(accuracy),
        "bias": _format_title(bias),
        "accuracy_before": accuracy_before,
        "accuracy_after": accuracy_after,
        "bias_before": before,
        "bias_after": after,
        **measure_price(lost, removed, shares_samples=metric.grouping is None),
    }


def _orient(before: float, after: float, direction: Direction) -> tuple[float, float]:
    """Return the signs of the values before and after that make less bias a smaller value."""
    if direction == "zero":
        return math.copysign(1.0, before), math.copysign(1.0, after)
    return (-1.0, -1.0) if direction == "higher" else (1.0, 1.0)
