"""Accuracy lost, bias removed and price of a re-ranked model, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.runner.stages.model import derive_bootstrap_seed
from recbias.statistics.bootstrap.cluster_bootstrap import bootstrap_t_interval
from recbias.statistics.bootstrap.query_bootstrap import ROUNDING, resample_sums
from recbias.statistics.compared_estimates import SystemEstimates
from recbias.statistics.intervals import normal_interval, t_interval
from recbias.statistics.ratios import estimate_ratio, estimate_resampled_ratio


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
            (``estimate_from_totals``), so that the accuracy can be resampled with them.
    """
    lost_values, removed_values = lost.values, removed.values
    if lost_values is None:
        return _measure_points(lost.point, removed.point, removed.scale)
    if removed_values is not None and lost_values.size == removed_values.size:
        return _measure_units(lost_values, removed_values, removed.scale)
    columns = _measure_points(lost.point, removed.point, removed.scale)
    columns |= _name_ends("accuracy_lost", *_find_t_ends(lost_values))
    if removed.replicates is not None:
        columns |= _measure_samples(columns, lost, removed, shares_samples=shares_samples)
    return columns


def _measure_units(lost: FloatArray, removed: FloatArray, scale: float) -> dict[str, float]:
    defined = ~np.isnan(lost) & ~np.isnan(removed)
    lost, removed = lost[defined], removed[defined]
    means = [float(values.mean()) if values.size else math.nan for values in (lost, removed)]
    columns = _measure_points(means[0], means[1], scale)
    for name, values in (("accuracy_lost", lost), ("bias_removed", removed)):
        columns |= _name_ends(name, *_find_t_ends(values))
    if not math.isnan(columns["price"]):
        columns |= _name_ends("price", *estimate_ratio(lost, removed)[1:])
    return columns | {"n": int(defined.sum())}


def _measure_samples(
    columns: dict[str, float],
    lost: VersionDifference,
    removed: VersionDifference,
    *,
    shares_samples: bool,
) -> dict[str, float]:
    """Return the interval of the bias removed by a bootstrap, and that of the price."""
    samples, df = removed.replicates, removed.estimates.df
    if samples is None:
        return {}
    low, high = (
        normal_interval(removed.point, samples)
        if math.isnan(df)
        else bootstrap_t_interval(removed.point, samples, int(df))
    )
    ends = _name_ends("bias_removed", float(low), float(high))
    if not shares_samples or math.isnan(columns["price"]):
        return ends
    joint = resample_mean(lost, removed.estimates.n or 0, samples.size)
    if joint is None:
        return ends
    both = np.stack([joint, samples])
    _, *price = estimate_resampled_ratio(lost.point, removed.point, both, df=df)
    return ends | _name_ends("price", *price)


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


def _find_t_ends(values: FloatArray) -> tuple[float, float]:
    values = values[~np.isnan(values)]
    if values.size < 2:
        return math.nan, math.nan
    low, high = t_interval(values.mean(), values.std(ddof=1), values.size)
    return float(low), float(high)


def _name_ends(name: str, low: float, high: float) -> dict[str, float]:
    return {f"{name}_low": low, f"{name}_high": high}


def _measure_points(lost: float, removed: float, scale: float) -> dict[str, float]:
    """Return what is lost and removed, and the price, undefined unless bias is removed.

    What is removed counts as 0 if it is a rounding error of the bias, ``scale``.
    """
    price = lost / removed if removed > ROUNDING * scale else math.nan
    return {"accuracy_lost": lost, "bias_removed": removed, "price": price}
