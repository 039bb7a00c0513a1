"""The columns of the tables in a run folder.

The notation of metrics: ``nDCG@5``, ``APLT(head=0.8)@10``.
The values of a metric: per-unit scores, and their mean with an interval.
The bounds of a metric, as the section ``Range`` of its docstring states them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from recbias.core.dataset import FloatArray, Ids
from recbias.core.errors import WrongType

FIT_COLUMNS = ("dataset", "model", "seed", "fold")
"""Identify a fitted model."""

METRIC_KEY_COLUMNS = ("metric", "k", "group", "target")
"""Identify a value of a fitted model."""

VALUE_COLUMNS = ("value", "std", "n", "undefined", "ci_low", "ci_high")
"""The value of a metric, its spread and its interval."""

METRICS_COLUMNS = (*FIT_COLUMNS, *METRIC_KEY_COLUMNS, *VALUE_COLUMNS)
"""The columns of ``metrics.csv``."""

ROUND_COLUMNS = (*FIT_COLUMNS, "round", "interactions", *METRIC_KEY_COLUMNS, *VALUE_COLUMNS)
"""The columns of ``rounds.csv``; ``interactions`` is the number that the model is trained on."""

PAIR_COLUMNS = (
    *("n", "mean_a", "mean_b", "difference", "ci_low", "ci_high"),
    *("statistic", "df", "p", "effect_size"),
)
"""The columns that a test gives for each pair of systems."""

SIGNIFICANCE_COLUMNS = (
    *(*FIT_COLUMNS, *METRIC_KEY_COLUMNS, "test", "between", "a", "b"),
    *("n", "mean_a", "mean_b", "difference", "ci_low", "ci_high", "statistic", "df", "p"),
    *("p_adjusted", "correction", "family", "family_size", "alpha", "significant", "effect_size"),
)
"""The columns of ``significance.csv``."""

TRADEOFF_COLUMNS = (
    *("dataset", "model", "seed", "fold", "baseline", "reranker", "setting", "strength"),
    *("accuracy", "bias", "target", "n", "accuracy_before", "accuracy_after"),
    *("accuracy_lost", "accuracy_lost_low", "accuracy_lost_high", "bias_before", "bias_after"),
    *("bias_removed", "bias_removed_low", "bias_removed_high"),
    *("price", "price_low", "price_high"),
)
"""The columns of ``tradeoffs.csv``."""

ALL = "all"
"""The dataset, seed or fold of a row that holds the mean over all of them."""

POOLED = "pooled"
"""The dataset of a row that pools all datasets, beside the mean over them."""

DATASET = "(dataset)"
"""The model of a row that measures the dataset itself."""

LEARNING_CURVE = ("epoch", "step", "loss", "value")
"""The columns of a learning curve: the number of the epoch and of the step in the whole training,
from 1, the name of a loss, and its value."""


@runtime_checkable
class OmitsSettings(Protocol):
    """A metric with settings that do not change its value, such as a number of permutations."""

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings that the name of the metric in results omits."""


_NOTATION = re.compile(
    r"^\s*(?P<name>[^()@]+?)\s*(\((?P<settings>[^()]*)\))?\s*(@\s*(?P<k>[0-9]{1,9}))?\s*$"
)

_NUMBER = re.compile(r"^[-+]?([0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})([eE][-+]?[0-9]{1,3})?$")


def parse_metric(text: str) -> tuple[str, dict[str, object]]:
    """Parse the notation of a metric into its name and its settings; WrongType if it is none.

    >>> parse_metric("nDCG@5")
    ('nDCG', {'k': 5})
    >>> parse_metric("APLT(head=0.8)@10")
    ('APLT', {'head': 0.8, 'k': 10})
    """
    match = _NOTATION.match(text)
    if not match:
        message = f"{text!r} is not a metric's name"
        raise WrongType(message, remedy="write it as nDCG, nDCG@5 or APLT(head=0.8)@10")
    settings: dict[str, object] = {}
    for part in filter(None, map(str.strip, (match["settings"] or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            message = f"{part!r} in {text!r} is not a setting"
            raise WrongType(message, remedy="write settings as (head=0.8)")
        settings[key.strip()] = _parse_value(value.strip())
    if match["k"]:
        settings["k"] = int(match["k"])
    return match["name"], settings


def format_metric(name: str, settings: Mapping[str, object]) -> str:
    """Format a metric in its notation; ``k`` follows the at sign.

    >>> format_metric("APLT", {"k": 10, "head": 0.8})
    'APLT(head=0.8)@10'
    """
    inner = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "k")
    cutoff = f"@{settings['k']}" if settings.get("k") is not None else ""
    return f"{name}({inner}){cutoff}" if inner else f"{name}{cutoff}"


def _parse_value(text: str) -> object:
    if text.casefold() in {"true", "false"}:
        return text.casefold() == "true"
    if not _NUMBER.match(text):
        return text
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


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


Bounds: TypeAlias = tuple[float, float]
"""The lowest and the highest value of a metric."""

UNBOUNDED: Bounds = (-math.inf, math.inf)
"""The bounds of a metric that can have any value."""

ROUNDING = 1e-12
"""The width of an interval of equal samples, which differ by rounding alone, as a share of it."""

_NUMBER_RANGES = r"-?\d+(?:\.\d+)?"
_LOWEST = re.compile(rf"({_NUMBER_RANGES}) (?:to|or more)\b")
_HIGHEST = re.compile(
    rf"(?:{_NUMBER_RANGES} to|at most) ({_NUMBER_RANGES})(?=\s*(?:[;,:.]|- |$))", re.IGNORECASE
)


def read_bounds(text: str) -> Bounds:
    """Return the bounds at the start of the description of a range, infinite where it has none.

    A bound that depends on the data counts as the number that it cannot exceed, if one is stated
    (``1 - 1/|C|``).

    >>> read_bounds("0 to 1 - 1/|C|; undefined if no list holds a candidate")
    (0.0, 1.0)
    >>> read_bounds("At most 1"), read_bounds("0 to log2 |C| bits"), read_bounds("Any number")
    ((-inf, 1.0), (0.0, inf), (-inf, inf))
    """
    low, high = _LOWEST.match(text), _HIGHEST.match(text)
    return (float(low[1]) if low else -math.inf, float(high[1]) if high else math.inf)


def limit_interval(measurement: Measurement, bounds: Bounds) -> Measurement:
    """Return a value whose interval ends at the bounds; see ``limit_ends``.

    The interval of equal values of units is that of ``widen_ends``. There is none if it has no
    width otherwise, as if all bootstrap samples of a value of the whole set of lists are equal.

    >>> row = Measurement(0.99, n=9, undefined=0, ci_low=0.97, ci_high=1.01)
    >>> limit_interval(row, (0.0, 1.0)).ci_high
    1.0
    """
    ends = (measurement.ci_low, measurement.ci_high)
    if measurement.units is not None and not measurement.own_interval:
        ends = widen_ends(ends, bounds, measurement.value, measurement.n)
    if not measurement.own_interval and ends[1] - ends[0] <= ROUNDING * max(map(abs, ends)):
        ends = (math.nan, math.nan)
    low, high = limit_ends(ends, bounds, measurement.value)
    return replace(measurement, ci_low=low, ci_high=high)


def widen_ends(ends: Bounds, bounds: Bounds, value: float, n: int) -> Bounds:
    """Return the 95% interval of the mean of ``n`` equal values in place of one without a width.

        v - q (v - a)  to  v + q (b - v),    q = 1 - 0.025^(1/n)

    Student's interval of equal values has no width, although others may differ. q is the largest
    share of the population that may have other values: if it were larger, n equal values would
    have a probability below 2.5%, which is what a two-sided interval leaves to each side. The
    others are between the bounds a and b. A value without bounds has no interval then. An
    interval with a width is returned as it is.

    >>> low, high = widen_ends((1.0, 1.0), (0.0, 1.0), 1.0, 3)
    >>> round(low, 4), high  # 0.025^(1/3)
    (0.2924, 1.0)
    >>> widen_ends((2.0, 2.0), UNBOUNDED, 2.0, 3)
    (nan, nan)

    Source:
        The bound of a share of which no case was seen: Clopper and Pearson, "The use of confidence
        or fiducial limits illustrated in the case of the binomial", Biometrika 1934.
    """
    if ends[0] != ends[1] or n < 1:  # NaN differs from itself
        return ends
    share = 1.0 - 0.025 ** (1.0 / n)
    low, high = (value + share * (bound - value) for bound in bounds)
    return (low, high) if math.isfinite(high - low) else (math.nan, math.nan)


def limit_ends(
    ends: tuple[float, float], bounds: Bounds, value: float = math.nan
) -> tuple[float, float]:
    """Return the ends of an interval within bounds; ends that are NaN stay NaN.

    The true value is within the bounds, so an interval that holds it holds it still. An interval
    of a value that is beyond the bounds (by rounding, say) still holds this value.

    >>> limit_ends((-0.1, float("nan")), (0.0, 1.0))
    (0.0, nan)
    >>> limit_ends((0.9, 1.2), (0.0, 1.0), 1.1)
    (0.9, 1.1)
    """
    lowest, highest = bounds
    if not math.isnan(value):
        lowest, highest = min(lowest, value), max(highest, value)
    low, high = (end if math.isnan(end) else min(max(end, lowest), highest) for end in ends)
    return low, high
