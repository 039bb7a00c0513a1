"""The design of each comparison of a run: its units, and the error that other numbers give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import FloatArray
from recbias.statistics.bootstrap.query_bootstrap import NAME as BOOTSTRAP
from recbias.statistics.interval_errors import derive_error
from recbias.statistics.power import (
    MAX_UNITS,
    ErrorBySize,
    ErrorOfMean,
    compute_detectable_difference,
    find_sample_size,
    measure_group_error,
    scale_error,
)

BEYOND = 1e15
"""A number of units that stands for any number."""

LEAST_OF_GROUPS = 4.0
"""The least number of units of two groups that have a variance each."""


@dataclass(frozen=True, eq=False)
class UnitDesign:
    """The units of a comparison.

    Args:
        unit: What the units are: ``user``, ``name``, ``template``, ...
        n: The number of units of the run.
        measure_error: The standard error and its degrees of freedom by the number of units.
        smallest: The smallest number of units that can be tested.
        shares: The shares of the two groups among the units, if they are groups.
        given: What stays as it is: ``4 templates``.
        obstacle: Why the error by the number of units is not known; blank if it is.
    """

    unit: str
    n: int
    measure_error: ErrorBySize
    smallest: float = 2.0
    shares: tuple[float, float] | None = None
    given: str = ""
    obstacle: str = ""

    def detect(self, alpha: float, power: float) -> dict[str, Any]:
        """Return the smallest difference that the run could have seen, with a remark."""
        if self.n < self.smallest:
            return {"remark": f"fewer than {self.smallest:,.0f} units"}
        error, df = self.measure_error(np.array(float(self.n)))
        if error == 0:
            return {"remark": f"undefined: no variance among the {self.n:,} {self.unit}s"}
        if np.isnan(error):
            return {"remark": "no interval"}
        detectable = compute_detectable_difference(error, df, alpha=alpha, power=power)
        return {"detectable": float(detectable)}

    def count_needed(self, difference: float, alpha: float, power: float) -> dict[str, Any]:
        """Return how many units a difference needs, of both groups and of each; with a remark."""
        if self.obstacle:
            return {"remark": self.obstacle}
        (needed,) = find_sample_size(
            self.measure_error, difference, smallest=[self.smallest], alpha=alpha, power=power
        )
        if math.isinf(needed):
            return {"remark": self._explain_unreachable(difference, alpha, power)}
        shares = self.shares or ()
        groups = [math.ceil(needed * share - 1e-9) for share in shares]
        sizes = dict(zip(("needed_a", "needed_b"), groups, strict=False))
        return {"needed": float(sum(groups) or needed), **sizes}

    def _explain_unreachable(self, difference: float, alpha: float, power: float) -> str:
        error, df = self.measure_error(np.array(BEYOND))
        limit = compute_detectable_difference(error, df, alpha=alpha, power=power)
        if self.given and limit > difference:
            return f"no number of {self.unit}s suffices with {self.given}: at best {limit:.4g}"
        return f"more than {MAX_UNITS:,}"


def scale_interval(row: Mapping[str, Any], unit: str) -> UnitDesign:
    """Return the design of one sample of units, from the interval of a comparison.

    The standard error is the half width of the interval divided by the quantile of its level. It
    falls with the square root of the number of units. It is 0 for models that differ by the same
    amount on every unit, which have no interval.
    """
    (error, df), n = derive_error(row), float(row["n"])
    if row["between"] == "models" and row["test"] != BOOTSTRAP and n > 1 and row["difference"]:
        error = 0.0 if math.isnan(row["ci_low"]) else error
    lost = n - df if math.isfinite(df) else 0.0
    count = 0 if math.isnan(n) else int(n)
    measure_error = scale_error(np.asarray(error), np.asarray(df), np.asarray(n))
    return UnitDesign(unit, count, measure_error, smallest=max(2.0, math.ceil(lost) + 1.0))


def keep_shares(row: Mapping[str, Any], unit: str) -> UnitDesign:
    """Return the design of groups of which only the interval of their difference is known.

        se(m) = se √(n / m),    df(m) = df m / n

    More units have the same shares of the groups, or the same distribution of their probabilities,
    so that each weighs less.
    """
    (error, df), n = derive_error(row), float(row["n"])
    count = 0 if math.isnan(n) else int(n)

    def measure_error(m: FloatArray) -> ErrorOfMean:
        return np.asarray(error * np.sqrt(n / m)), np.asarray(df * m / n)

    smallest = math.ceil(n / df) if df > 0 else math.inf
    return UnitDesign(unit, count, measure_error, smallest=max(LEAST_OF_GROUPS, smallest))


def compare_groups(
    row: Mapping[str, Any], groups: Sequence[Mapping[str, Any]], unit: str
) -> UnitDesign | None:
    """Return the design of two groups of other units, from their rows of ``metrics.csv``.

    None if the groups share their units or have no standard deviation.
    """
    sizes, std = ([float(group[name]) for group in groups] for name in ("n", "std"))
    if len(groups) != 2 or np.isnan(std).any() or sum(sizes) != row["n"]:
        return None
    n = sum(sizes)
    shares = (sizes[0] / n, sizes[1] / n)
    measure_error = measure_group_error(np.square(std), np.array(shares))
    return UnitDesign(unit, int(n), measure_error, math.ceil(2.0 / min(shares)), shares)
