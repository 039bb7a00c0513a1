"""What a metric says: one value a unit where it has units, and the mean as a view of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from recbias.core.arrays import FloatArray, Ids

Direction = Literal["higher", "lower", "zero", "none"]
"""Which way is better: fairness gaps are best at zero, counts are best nowhere."""

Unit = Literal["user", "prompt", "item", "template", "name", "sentence_pair", "response", "review"]
"""What the statistics count."""


def badness(value: float, direction: Direction) -> float:
    """Return a number that is smaller for a better figure; NaN where neither is better.

    >>> badness(0.3, "higher"), badness(-0.2, "zero"), badness(5.0, "lower")
    (-0.3, 0.2, 5.0)
    """
    return {"higher": -value, "lower": value, "zero": abs(value)}.get(direction, math.nan)


@dataclass(frozen=True)
class Contrast:
    """A test inside one model: of two groups of queries, or of two sets of items.

    It is a row of ``significance.csv``; p is not corrected here: the runner corrects it within its
    family, the contrasts of the same metric and model by the same test.

    Args:
        between: What ``a`` and ``b`` are: ``groups`` (of queries, users or sentences), ``targets``
            (sets of items), ``directions`` or ``labels``.
        a: The first side, as the figures name it: ``gender=F``.
        b: The second side.
        test: The test: ``welch_t``, ``permutation``, ``paired_t``, ...
        n: How many units both sides have together; for a paired test, how many pairs.
        mean_a: The figure of ``a``.
        mean_b: The figure of ``b``.
        difference: ``mean_a`` - ``mean_b``, or the statistic's own difference.
        statistic: The test statistic.
        p: Two-sided, not corrected; NaN where the test cannot be made.
        df: Degrees of freedom, NaN where there are none.
        ci_low: Lower end of the 95% interval of the difference, NaN where there is none.
        ci_high: Upper end.
        effect_size: As the test defines it, NaN where there is none.
    """

    between: str
    a: str
    b: str
    test: str
    n: int
    mean_a: float
    mean_b: float
    difference: float
    statistic: float
    p: float
    df: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    effect_size: float = math.nan


@dataclass(frozen=True, eq=False)
class UnitScores:
    """One value for each unit.

    Args:
        unit: What the units are.
        ids: Their identifiers.
        values: ``float64[u]``; NaN means undefined for that unit.
        share: Whether every value is 0 or 1, so that their mean is a share.
    """

    unit: str
    ids: Ids
    values: FloatArray
    share: bool = False


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
        df: Degrees of freedom of the spread of ``replicates``, for Student's t; NaN where there
            are so many units that it is normal.
        contrasts: Tests inside this model that belong to the figure; its group and target are
            those of their rows.
        counts: What the figure follows from, where it adds up over datasets: ``float64[c]``, for
            metrics that pool (see ``protocols.Pools``).
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
    df: float = math.nan
    contrasts: tuple[Contrast, ...] = ()
    counts: FloatArray | None = None

    @classmethod
    def from_units(cls, units: UnitScores, *, group: str = "", target: str = "") -> Measurement:
        """Return the mean over the units where the metric is defined, with a 95% interval.

        >>> ids = np.array(["a", "b", "c"], dtype=object)
        >>> found = Measurement.from_units(UnitScores("user", ids, np.array([1.0, 0.0, np.nan])))
        >>> found.value, found.n, found.undefined
        (0.5, 2, 1)
        """
        summary = cls.from_values(units.values, share=units.share)
        return replace(summary, group=group, target=target, units=units)

    @classmethod
    def from_values(cls, values: FloatArray, *, share: bool = False) -> Measurement:
        """Return the mean of the defined values, with a 95% interval, and the counts.

        Args:
            values: One value a unit; NaN is undefined.
            share: Whether every value is 0 or 1: the interval is then Wilson's, which stays within
                0 and 1 and has a width where all are alike; else it is Student's t.
        """
        defined = values[~np.isnan(values)]
        n = int(defined.size)
        mean = float(defined.mean()) if n else math.nan
        std = float(defined.std(ddof=1)) if n > 1 else math.nan
        half = _half_width(std, n)
        low, high = mean - half, mean + half
        if n and share:
            low, high = _wilson(mean, n)
        undefined = int(values.size) - n
        return cls(value=mean, std=std, n=n, undefined=undefined, ci_low=low, ci_high=high)


def _wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a share (Wilson, JASA 1927)."""
    z = 1.959963984540054
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _half_width(std: float, n: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n) if n > 1 else math.nan
