"""The three bases of metrics.

``PerQuery`` returns a value for each query, ``WholeSet`` totals and a function of them, and
``Grouped`` values for each query and group. The bases make the rows: units, undefined values,
intervals and bootstrap samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
from annotated_types import Gt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.docstrings import InheritsSections
from recbias.core.evidence import Evidence
from recbias.core.measures import Measurement, UnitScores
from recbias.statistics.bootstrap import (
    build_estimate,
    join_rows,
    resample_linear_part,
    resample_sums,
    widen_samples,
)
from recbias.statistics.intervals import log_interval

Cutoff: TypeAlias = Annotated[int, Gt(0)] | None
"""How many ranks of each list are evaluated; by default all."""


@dataclass(frozen=True, kw_only=True)
class PerQuery(InheritsSections):
    """A metric with one value for each query, review or response; their mean is reported."""

    unit: ClassVar[str] = "query"
    is_share: ClassVar[bool] = False
    """Whether the values are 0 or 1."""

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each unit, ``float64[n]``; NaN is undefined."""
        raise NotImplementedError

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float] | None:
        """Return the interval of the mean where that of a mean of known values is wrong."""
        return None

    def units(self, evidence: Evidence) -> tuple[str, Ids]:
        """Return the kind and the names of the units."""
        if self.unit == "review":
            return self.unit, evidence.predictions.ids  # type: ignore[union-attr]
        if self.unit == "response":
            return self.unit, evidence.responses.ids  # type: ignore[union-attr]
        return evidence.queries.unit, evidence.queries.ids.ids

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each unit, and their mean."""
        values = self.values(evidence)
        mean = Measurement.from_units(UnitScores(*self.units(evidence), values, self.is_share))
        return [_replace_interval(mean, self.interval(evidence, values))]


@dataclass(frozen=True, eq=False)
class Totals:
    """What each query adds to the totals of a metric, and the function of these totals.

    Args:
        rows: What each query adds, an array or CSR ``(q, c)``.
        estimate: From sums of rows ``(..., c)`` to values ``float64[...]``, or ``(..., g)`` to
            those of ``groups``.
        without_rows: The value without each row of ``rows``, ``float64[q]``, for the jackknife.
        n_excluded: The number of queries without a row, counted as undefined.
        df: Degrees of freedom of the standard error; NaN for the normal distribution.
        groups: The groups of items whose values the metric summarises.
    """

    rows: Any
    estimate: Callable[[AnyArray], FloatArray]
    without_rows: Callable[[Any], FloatArray] | None = None
    n_excluded: int = 0
    df: float = math.nan
    groups: tuple[str, ...] = ()


_MAX_GROUPS = 64
"""The values of more groups than this are not kept for each bootstrap sample."""


@dataclass(frozen=True, kw_only=True)
class WholeSet(InheritsSections):
    """A metric of all queries together, a function of totals over them.

    The interval comes from bootstrap samples of the queries, or from the jackknife where the
    totals have a value without each row.
    """

    unit: ClassVar[str] = ""
    log_scale: ClassVar[bool] = False
    """Whether the interval is that of the logarithm."""
    is_step: ClassVar[bool] = False
    """Whether the metric counts what is above 0, so that leaving out a row changes too little."""
    is_absolute: ClassVar[bool] = False
    """Whether the metric is the absolute value of what ``summarize`` returns."""

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each query adds, and the function of the sums."""
        raise NotImplementedError

    def summarize(self, values: FloatArray) -> FloatArray:
        """Return the metric of the values of groups, ``(..., g)`` to ``float64[...]``.

        Over several seeds and folds it is the metric of the mean values of the groups.
        """
        raise NotImplementedError

    def combine(self, values: FloatArray, estimate: FloatArray) -> FloatArray:
        """Return the metric of samples of the values of groups, whose estimates are ``[g]``.

        An absolute value varies less near 0, so samples are negative if their sign is the other.
        """
        summary = self.summarize(values)
        return -summary if self.is_absolute and self.summarize(estimate) < 0 else summary

    def interval(self, evidence: Evidence, totals: Totals) -> tuple[float, float] | None:
        """Return the interval of the estimate where that of its samples is wrong."""
        return None

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimate, with its bootstrap samples."""
        totals = self.totals(evidence)
        parts: list[FloatArray] = []

        def estimate(sums: AnyArray) -> FloatArray:
            values = totals.estimate(sums)
            if not totals.groups:
                return values
            if not parts or values.shape[-1] <= _MAX_GROUPS:
                parts.append(np.atleast_2d(values))
            return self.combine(values, parts[0][0])

        row = self._estimate(evidence, totals, estimate)
        if parts:
            by_group = zip(totals.groups, np.concatenate(parts).T, strict=True)
            row = replace(row, parts=dict(by_group))
        if self.log_scale and row.replicates is not None:
            low, high = log_interval(row.value, row.replicates)
            row = replace(row, ci_low=low, ci_high=high, log_scale=True)
        return [_replace_interval(row, self.interval(evidence, totals))]

    def _estimate(
        self, evidence: Evidence, totals: Totals, estimate: Callable[[AnyArray], FloatArray]
    ) -> Measurement:
        """Return the estimate of the sums of all rows; NaN without a row or a column.

        The bootstrap samples of the rows are the same for every model.
        """
        counts, df, without = totals.rows, totals.df, totals.without_rows
        n, value, replicates = counts.shape[0], np.nan, np.full(evidence.n_bootstrap, np.nan)
        if all(counts.shape):
            value, rng = float(estimate(counts.sum(axis=0))), evidence.rng()
            rows = counts if without is None else join_rows(counts, rng)
            same = deepcopy(rng)
            if without is None or self.is_step:
                samples = resample_sums(rows, evidence.n_bootstrap, rng)
                replicates = np.concatenate([np.empty(0), *map(estimate, samples)])
            if without is not None:
                fast = without if rows is counts else None
                linear, df = resample_linear_part(
                    rows, estimate, evidence.n_bootstrap, same, leave_out=fast
                )
                replicates = widen_samples(value, linear, replicates) if self.is_step else linear
        return build_estimate(value, replicates, n, n + totals.n_excluded, df=df)


@dataclass(frozen=True, kw_only=True)
class Grouped(InheritsSections):
    """A metric with one value for each query and group, and one row for each group."""

    unit: ClassVar[str] = "query"

    def values(self, evidence: Evidence) -> Iterator[tuple[str, FloatArray, float]]:
        """Yield the name of each group, its value of each query, and a further variance.

        The variance is that of an error of the mean which is independent of the sampling of the
        queries, such as that of unknown groups; NaN if there is none.
        """
        raise NotImplementedError

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query and their mean, for each group."""
        rows = []
        for group, values, variance in self.values(evidence):
            row = replace(evidence.measure_queries(values), target=group)
            rows.append(row if math.isnan(variance) else _widen_interval(row, variance))
        return rows


def mark_candidates(evidence: Evidence) -> BoolArray:
    """Return which items may be recommended, ``bool[n_items]``; all if it is not known."""
    if evidence.candidates is None:
        return np.ones(len(evidence.item_ids), dtype=bool)
    return evidence.candidates


def warn_excluded(evidence: Evidence, n: int, item: str) -> None:
    """Warn of ``n`` positions of the lists, that hold such an item and are excluded."""
    if n:
        warn(f"{evidence.metric}: {n:,} positions of the lists hold {item} and are excluded")


def locate_items(
    evidence: Evidence, has_value: BoolArray, k: int | None, item: str
) -> tuple[AnyArray, BoolArray]:
    """Return the items of the lists and which of them have a value; warn of the others."""
    items, known = evidence.ranked.items[:, :k], evidence.in_catalogue[:, :k]
    counted = known & np.append(has_value, False)[np.where(known, items, -1)]
    warn_excluded(evidence, int(np.count_nonzero(items >= 0) - np.count_nonzero(counted)), item)
    return items, counted


def _replace_interval(row: Measurement, ends: tuple[float, float] | None) -> Measurement:
    return (
        row if ends is None else replace(row, ci_low=ends[0], ci_high=ends[1], own_interval=True)
    )


def _widen_interval(row: Measurement, variance: float) -> Measurement:
    """Return a mean with the interval x ± √(h² + z(0.975)² V), h the half width without V."""
    from scipy.special import ndtri

    error = float(ndtri(0.975)) * math.sqrt(variance)
    half_width = math.hypot((row.ci_high - row.ci_low) / 2.0, error)
    return _replace_interval(row, (row.value - half_width, row.value + half_width))
