"""The values of a metric: per-unit scores, and their mean with an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from recbias.core.arrays import FloatArray, Ids

Direction = Literal["higher", "lower", "zero", "none"]
"""Whether higher, lower or zero is best; ``none`` if no value is better than another."""

_EQUAL = 1e-13
"""The standard deviation of values that differ by rounding alone, as a share of their mean."""

Unit = Literal["query", "review", "response", "name", "sentence_pair", ""]
"""The unit of the per-unit scores of a metric; blank for a value of the whole set of lists."""


def to_loss(value: float, direction: Direction) -> float:
    """Return a loss, which is smaller for a better value; NaN if ``direction`` is ``none``.

    >>> to_loss(0.3, "higher"), to_loss(-0.2, "zero"), to_loss(5.0, "lower")
    (-0.3, 0.2, 5.0)
    """
    return {"higher": -value, "lower": value, "zero": abs(value)}.get(direction, math.nan)


@dataclass(frozen=True)
class Contrast:
    """A test within one model: of two groups of queries, or of two sets of items.

    It becomes a row of ``significance.csv``. The runner corrects p within its family: the
    contrasts of the same metric and model by the same test.

    Args:
        between: What ``a`` and ``b`` are: ``groups`` (of queries, users or sentences), ``targets``
            (sets of items), ``directions`` or ``labels``.
        a: The first side, named as in ``metrics.csv``: ``gender=F``; ``b`` is the second.
        test: The test: ``welch_t``, ``permutation``, ``paired_t``, ...
        n: The number of units of both sides together; for a paired test, the number of pairs.
        mean_a: The value of ``a``, and ``mean_b`` that of ``b``.
        difference: ``mean_a`` - ``mean_b``, or the difference that the test statistic uses.
        p: Two-sided, not corrected; NaN if the test cannot be computed.
        ci_low: Lower end of the 95% interval of the difference, or NaN.
        effect_size: As the test defines it, or NaN.
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
        values: ``float64[u]``; NaN if the metric is undefined for the unit.
        share: Whether every value is 0 or 1, so that their mean is a proportion.
    """

    unit: str
    ids: Ids
    values: FloatArray
    share: bool = False


@dataclass(frozen=True, eq=False)
class Measurement:
    """One value of a metric.

    Args:
        value: The value; NaN, never 0, if it is undefined for every unit.
        std: Sample standard deviation (n - 1) over the defined units; NaN below two units.
        n: The number of units for which it is defined; ``undefined`` that of the others.
        group: The group of queries that it is restricted to (``race=black``), or blank.
        target: The items that it is restricted to (``price=$``), or blank.
        units: The per-unit scores, for metrics that have them.
        replicates: The value on each bootstrap sample of the queries, ``float64[b]``, for metrics
            of the whole set of lists; all models share the samples.
        df: Degrees of freedom of the standard deviation of ``replicates``, for Student's t; NaN
            for the normal distribution.
        contrasts: Tests within this model; their rows get this group and target.
        counts: Counts that add up over datasets and determine the value, ``float64[c]``, for
            metrics that can be pooled (see ``protocols.Pools``).
        log_scale: Whether the interval of the ``replicates`` is that of their logarithm.
        own_interval: Whether the interval accounts for more than the sampling of the units, and
            does not follow from their values.
        axes: The directions in the space of the embeddings that the value refers to, by name:
            unit vectors, ``float64[d]``, NaN where there is none.
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
    log_scale: bool = False
    own_interval: bool = False
    axes: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_units(cls, units: UnitScores, *, group: str = "", target: str = "") -> Measurement:
        """Return the mean over the units for which the metric is defined, with a 95% interval.

        >>> ids = np.array(["a", "b", "c"], dtype=object)
        >>> scores = UnitScores("user", ids, np.array([1.0, 0.0, np.nan]))
        >>> measurement = Measurement.from_units(scores)
        >>> measurement.value, measurement.n, measurement.undefined
        (0.5, 2, 1)
        """
        summary = cls.from_values(units.values, share=units.share)
        return replace(summary, group=group, target=target, units=units)

    @classmethod
    def from_values(cls, values: FloatArray, *, share: bool = False) -> Measurement:
        """Return the mean of the defined values, with a 95% interval, and the counts.

        The interval is Student's t, or for a ``share`` (values of 0 and 1) Wilson's, which lies
        within 0 and 1 and has a positive width even if all values are equal.
        """
        from scipy.special import stdtrit

        defined = values[~np.isnan(values)]
        n = int(defined.size)
        mean = float(defined.mean()) if n else math.nan
        std = float(defined.std(ddof=1)) if n > 1 else math.nan
        std = 0.0 if std <= _EQUAL * abs(mean) else std
        half = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n) if n > 1 else math.nan
        low, high = mean - half, mean + half
        if n and share:
            low, high = _compute_wilson_interval(mean, n)
        undefined = int(values.size) - n
        return cls(value=mean, std=std, n=n, undefined=undefined, ci_low=low, ci_high=high)


def _compute_wilson_interval(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a proportion (Wilson, JASA 1927)."""
    z = 1.959963984540054
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)
