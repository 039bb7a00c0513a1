"""What a metric says: one value a unit where it has units, and the mean as a view of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recbias.core.arrays import FloatArray, Ids

Direction = Literal["higher", "lower", "zero", "none"]
"""Which way is better: fairness gaps are best at zero, counts are best nowhere."""

Unit = Literal["user", "prompt", "item", "template", "name", "sentence_pair"]
"""What the statistics count."""


@dataclass(frozen=True, eq=False)
class UnitScores:
    """One value for each unit.

    Args:
        unit: What the units are.
        ids: Their identifiers.
        values: ``float64[u]``; NaN means undefined for that unit.
    """

    unit: str
    ids: Ids
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Measurement:
    """One figure.

    Args:
        value: The figure; NaN where nothing is defined, never 0.
        std: Sample standard deviation (n - 1) over the defined units; NaN below two units.
        n: Units where it is defined.
        undefined: Units where it is not.
        group: The query label it is of (``race=black``), or blank.
        target: The item attribute value it is of (``price=$``), or blank.
        ci_low: Lower end of the interval, NaN where there is none.
        ci_high: Upper end.
        units: The value of each unit, for metrics that have one.
        replicates: The figure on each bootstrap sample of the queries, ``float64[b]``, for metrics
            of the whole set of lists; the samples are the same for every model.
    """

    value: float
    n: int
    undefined: int
    std: float = math.nan
    group: str = ""
    target: str = ""
    ci_low: float = math.nan
    ci_high: float = math.nan
    units: UnitScores | None = None
    replicates: FloatArray | None = None

    @classmethod
    def of_units(cls, units: UnitScores, *, group: str = "", target: str = "") -> Measurement:
        """Return the mean over the units where the metric is defined, with a 95% t interval.

        >>> ids = np.array(["a", "b", "c"], dtype=object)
        >>> found = Measurement.of_units(UnitScores("user", ids, np.array([1.0, 0.0, np.nan])))
        >>> found.value, found.n, found.undefined
        (0.5, 2, 1)
        """
        summary = cls.of_values(units.values)
        return replace(summary, group=group, target=target, units=units)

    @classmethod
    def of_values(cls, values: FloatArray) -> Measurement:
        """Return the mean of the defined values, with a 95% t interval, and the counts."""
        defined = values[~np.isnan(values)]
        n = int(defined.size)
        mean = float(defined.mean()) if n else math.nan
        std = float(defined.std(ddof=1)) if n > 1 else math.nan
        half = _half_width(std, n)
        return cls(
            value=mean,
            std=std,
            n=n,
            undefined=int(values.size) - n,
            ci_low=mean - half,
            ci_high=mean + half,
        )


def _half_width(std: float, n: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n) if n > 1 else math.nan
