"""The tables of a run folder, and the values of a metric: per unit, their mean, interval, bounds.

A metric is written as ``nDCG@5`` or ``APLT(head=0.8)@10``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset import AnyArray, FloatArray, Ids
from recbias.core.errors import WrongType


@dataclass(frozen=True)
class _Column:
    """A column of a result file.

    Args:
        type: ``str``, ``float``, ``int``, ``bool``, or ``int | None`` for whole numbers that do
            not apply to every row.
        by_test: Whether a paired test returns it for each pair of systems.
    """

    name: str
    type: Any
    meaning: str
    by_test: bool = False


class Table:
    """A result file: writer, readers, JSON and documentation follow from its columns."""

    def __init__(self, file: str, *columns: _Column) -> None:
        self.file, self.columns = file, columns

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns in the order of the file."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def counts(self) -> frozenset[str]:
        """The columns with a whole number in every row."""
        return frozenset(column.name for column in self.columns if column.type is int)

    @cached_property
    def whole_numbers(self) -> frozenset[str]:
        """The columns of whole numbers, also those that do not apply to every row."""
        optional = {column.name for column in self.columns if column.type == int | None}
        return self.counts | optional

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The columns of numbers."""
        floats = {column.name for column in self.columns if column.type is float}
        return self.whole_numbers | floats

    def build(self, rows: Iterable[Mapping[str, Any]] | pd.DataFrame = ()) -> pd.DataFrame:
        """Return rows as the table that is written."""
        rows = rows if isinstance(rows, pd.DataFrame) else list(rows)
        table = pd.DataFrame(rows, columns=list(self.names))
        return table.astype(dict.fromkeys(self.whole_numbers, "Int64"))

    def write(self, folder: Path, rows: Iterable[Mapping[str, Any]] | pd.DataFrame) -> None:
        """Write the CSV file into a run folder."""
        self.build(rows).to_csv(folder / self.file, index=False, lineterminator="\n")


_FIT = (
    _Column("dataset", str, "the dataset; `all` for the mean over all, `pooled` for all together"),
    _Column("model", str, "the label of the model; blank where models are compared"),
    _Column("seed", str, "the seed; `all` for the mean over seeds"),
    _Column("fold", str, "the fold, from 1; `all` for the mean over folds"),
)
_METRIC_KEYS = (
    _Column("metric", str, "the metric with its settings"),
    _Column("k", int | None, "the number of ranks that are measured"),
    _Column("group", str, "the group of queries that the value is restricted to"),
    _Column("target", str, "the items that the value is restricted to"),
)
_VALUES = (
    _Column("value", float, "the value; blank if it is undefined"),
    _Column("std", float, "the sample standard deviation over units, or over what `all` averages"),
    _Column("n", int, "the number of units that have a value"),
    _Column("undefined", int, "the number of units that have none"),
    _Column("ci_low", float, "the lower end of the 95% interval"),
    _Column("ci_high", float, "the upper end of the 95% interval"),
)
FIT_COLUMNS = tuple(column.name for column in _FIT)
"""Identify a fitted model."""

METRIC_KEY_COLUMNS = tuple(column.name for column in _METRIC_KEYS)
"""Identify a value of a fitted model."""

VALUE_COLUMNS = tuple(column.name for column in _VALUES)
"""The value of a metric, its spread and its interval."""

METRICS = Table("metrics.csv", *_FIT, *_METRIC_KEYS, *_VALUES)
GROUPS = Table("groups.csv", *METRICS.columns)
SIGNIFICANCE = Table(
    "significance.csv",
    *_FIT,
    *_METRIC_KEYS,
    _Column("test", str, "the test, with the settings that tell it from others of its kind"),
    _Column("between", str, "what is compared: `models`, `groups`, `targets`, ..."),
    _Column(
        "a",
        str,
        "the first side: of `welch_anova` the highest mean, of a trend the last group",
    ),
    _Column("b", str, "the second side: there the lowest mean, or the first group"),
    _Column("n", int, "the number of units of both sides, or of pairs", by_test=True),
    _Column("mean_a", float, "the value of the first side", by_test=True),
    _Column("mean_b", float, "the value of the second side", by_test=True),
    _Column("difference", float, "the first value minus the second", by_test=True),
    _Column(
        "ci_low",
        float,
        "the lower end of the interval of the difference: 95%, of models 1 - alpha",
        by_test=True,
    ),
    _Column("ci_high", float, "the upper end of the interval", by_test=True),
    _Column("statistic", float, "the statistic of the test", by_test=True),
    _Column("df", float, "its degrees of freedom", by_test=True),
    _Column("p", float, "the two-sided p-value before the correction", by_test=True),
    _Column("p_adjusted", float, "the p-value after the correction, within its family"),
    _Column("correction", str, "how the p-values of a family are corrected"),
    _Column("family", str, "the comparisons that are corrected together"),
    _Column("family_size", int, "the number of tests in the family"),
    _Column("alpha", float, "the level"),
    _Column("significant", bool, "whether the adjusted p-value is at most the level"),
    _Column("effect_size", float, "the size of the effect, as the test defines it", by_test=True),
)
PAIR_COLUMNS = tuple(column.name for column in SIGNIFICANCE.columns if column.by_test)
"""The columns that a test gives for each pair of systems."""

TRADEOFFS = Table(
    "tradeoffs.csv",
    *_FIT,
    _Column("baseline", str, "the model that is re-ranked"),
    _Column("reranker", str, "the re-ranker"),
    _Column("setting", str, "the setting that makes re-ranking stronger"),
    _Column("strength", float, "its value"),
    _Column("accuracy", str, "the metric of accuracy"),
    _Column("bias", str, "the metric of bias"),
    _Column("target", str, "the items that the bias is restricted to"),
    _Column("n", float, "the number of units for which both metrics are defined"),
    _Column("accuracy_before", float, "the accuracy of the baseline"),
    _Column("accuracy_after", float, "the accuracy of the re-ranked model"),
    _Column("accuracy_lost", float, "the first minus the second"),
    _Column("accuracy_lost_low", float, "the lower end of its 95% interval"),
    _Column("accuracy_lost_high", float, "the upper end"),
    _Column("bias_before", float, "the bias of the baseline"),
    _Column("bias_after", float, "the bias of the re-ranked model"),
    _Column(
        "bias_removed", float, "the reduction of the bias; if 0 is best, of its distance to 0"
    ),
    _Column("bias_removed_low", float, "the lower end of its 95% interval"),
    _Column("bias_removed_high", float, "the upper end"),
    _Column("price", float, "accuracy lost divided by bias removed; blank unless bias is removed"),
    _Column("price_low", float, "the lower end of its 95% interval"),
    _Column("price_high", float, "the upper end"),
)
COUNTS = Table(
    "counts.csv",
    *_FIT,
    *_METRIC_KEYS,
    _Column("name", str, "what is counted"),
    _Column("count", float, "the count, which adds up over datasets"),
)
DIRECTIONS = Table(
    "directions.csv",
    *_FIT,
    _Column("metric", str, "the metric with its settings"),
    _Column("direction", str, "the name of the direction"),
    _Column("dimensions", int, "the length of the vector"),
    _Column("file", str, "the unit vector, `float64[d]`"),
)
TRIALS = Table(
    "trials.csv",
    *_FIT,
    _Column("trial", int, "the number of the trial"),
    _Column("value", float, "the objective on the validation set"),
    _Column("state", str, "`done`, `pruned`, `excluded` or `failed`"),
    _Column("seconds", float, "how long the trial took"),
    _Column("epochs", int | None, "the number of validated epochs"),
    _Column("settings", str, "the settings as JSON"),
)
IMPORTANCES = Table(
    "importances.csv",
    *_FIT,
    _Column("setting", str, "a searched setting"),
    _Column("importance", float, "the share of the variance of the values that it explains"),
)
_CURVE = (
    _Column("epoch", float, "the epoch in the whole training, from 1"),
    _Column("step", float, "the step in the whole training, from 1"),
    _Column("loss", str, "the name of the loss"),
    _Column("value", float, "its value"),
)
LEARNING_CURVE = tuple(column.name for column in _CURVE)
"""The columns of a learning curve."""

LEARNING_CURVES = Table("learning_curves.csv", *_FIT, *_CURVE)
PER_UNIT = Table(
    "per_unit.parquet",
    *_FIT,
    _Column("unit", str, "the kind of the unit: `query`, `response`, ..."),
    _Column("unit_id", str, "the unit"),
    *_METRIC_KEYS,
    _Column("value", float, "the value of the unit"),
)
REPLICATES = Table(
    "replicates.parquet",
    *_FIT,
    *_METRIC_KEYS,
    _Column("queries", str, "a checksum of the queries; the same queries have the same samples"),
    _Column("df", float, "the degrees of freedom of Student's t; blank for a normal distribution"),
    _Column("log_scale", bool, "whether the interval is computed for the logarithm"),
    _Column("value", float, "the value on one bootstrap sample of the queries"),
)
LISTS = Table(
    "lists.parquet",
    *_FIT,
    _Column("query_id", str, "the query"),
    _Column("rank", int, "the rank, from 1"),
    _Column("item_id", str, "the recommended item"),
    _Column("score", float, "its score"),
)
POPULARITY = Table(
    "popularity.parquet",
    _FIT[0],
    _FIT[2],
    _FIT[3],
    _Column("item_id", str, "the item"),
    _Column("interactions", int, "its number of training interactions"),
)
CHECKS = Table(
    "manifest.json",
    *_FIT,
    *_METRIC_KEYS,
    _Column("baseline", str, "the model that the value is compared with, or blank"),
    _Column("value", float, "the value, or its difference from the baseline"),
    _Column("ci_low", float, "the lower end of its 95% interval"),
    _Column("ci_high", float, "the upper end"),
    _Column("limit", str, "the limit in words"),
    _Column("verdict", str, "`pass`, `fail` or `undecided`"),
    _Column("basis", str, "`interval`, `value`, `single` (one unit), `undefined` or `failure`"),
    _Column("strict", bool, "whether an undecided check fails"),
    _Column("failed", bool, "whether the check fails"),
)
"""The entry ``checks`` of the manifest."""

FAILURES = Table(
    "manifest.json",
    _Column("stage", str, "the stage that failed"),
    *_FIT,
    _Column("message", str, "why"),
    _Column("help", str, "what to do"),
    _Column("user", bool, "whether the input is at fault"),
    _Column("because", str, "the failed stage that this one needs, or blank"),
    _Column("traceback", str, "the traceback"),
)
"""The entry ``failures`` of the manifest."""

TABLES = (
    *(METRICS, PER_UNIT, SIGNIFICANCE, GROUPS, TRADEOFFS, LISTS, POPULARITY, REPLICATES),
    *(COUNTS, DIRECTIONS, TRIALS, IMPORTANCES, LEARNING_CURVES),
)
"""All result files with columns."""

ALL = "all"
"""The dataset, seed or fold of a row that holds the mean over all of them."""

POOLED = "pooled"
"""The dataset of a row that pools all datasets, beside the mean over them."""

SERVED = "served by all models"
"""The group of the queries that all models have a list for, where some models lack lists."""

CONTROL = "neutral sampled again"
"""The second side of comparisons of prompts that state an identity with neutral ones."""

DATASET = "(dataset)"
"""The model of a row that measures the dataset itself."""


_NOTATION = re.compile(
    r"^\s*(?P<name>[^()@]+?)\s*(\((?P<settings>[^()]*)\))?\s*(@\s*(?P<k>[0-9]{1,9}))?\s*$"
)

_COMMA = re.compile(r",(?![^\[\]]*\])")
"""Matches a comma that is not within brackets."""

_NUMBER = re.compile(r"^[-+]?([0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})([eE][-+]?[0-9]{1,3})?$")


def parse_metric(text: str) -> tuple[str, dict[str, object]]:
    """Parse the notation of a metric into its name and its settings; WrongType if it is none.

    >>> parse_metric("nDCG@5")
    ('nDCG', {'k': 5})
    >>> parse_metric("APLT(head=0.8)@10")
    ('APLT', {'head': 0.8, 'k': 10})
    >>> parse_metric("nDCG(by=age in [18, 25], gap=difference)")
    ('nDCG', {'by': 'age in [18, 25]', 'gap': 'difference'})
    """
    match = _NOTATION.match(text)
    if not match:
        message = f"{text!r} is not a metric's name"
        raise WrongType(message, remedy="write it as nDCG, nDCG@5 or APLT(head=0.8)@10")
    settings: dict[str, object] = {}
    for part in filter(None, map(str.strip, _COMMA.split(match["settings"] or ""))):
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
    contrasts of the same metric by the same test, of all models.

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

    @classmethod
    def of_means(
        cls, between: str, names: Iterable[str], means: Iterable[float], **others: Any
    ) -> Contrast:
        """Return the test of two means, whose difference is the statistic unless it is given."""
        (a, b), (mean_a, mean_b) = names, map(float, means)
        gap = {"difference": mean_a - mean_b, "statistic": mean_a - mean_b}
        return cls(between, a, b, mean_a=mean_a, mean_b=mean_b, **(gap | others))


@dataclass(frozen=True, eq=False)
class UnitScores:
    """One value for each unit.

    Args:
        values: ``float64[u]``; NaN if the metric is undefined for the unit.
        share: Whether every value is 0 or 1, so that their mean is a proportion.
        totals: What each unit adds to the totals of a ratio, of which the values are the
            linearised form (``linearize_ratio``), so that groups of units have ratios of their
            own; None for other metrics.
        errors: The errors that the values share; see ``statistics.prediction_powered``.
        positive: Whether the ratio of totals cannot be negative, though what a unit adds may be.
    """

    unit: str
    ids: Ids
    values: FloatArray
    share: bool = False
    totals: FloatArray | None = None
    errors: Any = None
    positive: bool = False

    @property
    def compared(self) -> FloatArray:
        """The values by which two models are subtracted.

        A unit that adds nothing to a ratio has its value, and the others are spread accordingly,
        so that models with other units can be subtracted, such as variants with other users.
        """
        return self.values if self.totals is None else spread_ratio(self.totals)

    def take(self, rows: AnyArray) -> UnitScores:
        """Return some of the units, by position; a ratio is that of these units."""
        errors = None if self.errors is None else self.errors.take(rows)
        totals = None if self.totals is None else self.totals[rows]
        values = self.values[rows] if totals is None else linearize_ratio(totals)
        return replace(self, ids=self.ids[rows], values=values, totals=totals, errors=errors)


def linearize_ratio(totals: FloatArray) -> FloatArray:
    """Return values of units whose mean is a ratio of totals, and whose variance is the ratio's.

        R = Σ n_u / Σ d_u,    z_u = R + (n_u - R d_u) / (Σ d / U)

    The mean of z over the U units is R, and the standard error of this mean is that of the ratio
    by the delta method, in which units are clusters of rows. A unit without a denominator is
    undefined.

    Args:
        totals: Numerator and denominator of each unit, ``float64[u, 2]``. A third column is what
            the unit adds to the error of fitted values: it changes no ratio, not that of a group
            of units either, but the spread of z.

    >>> linearize_ratio(np.array([[1.0, 2.0], [0.0, 1.0], [0.0, 0.0]])).round(3).tolist()
    [0.556, 0.111, nan]

    Source:
        Cochran, "Sampling techniques", 1977, section 6.3; Deng, Knoblich and Lu, KDD 2018.
    """
    values = np.full(len(totals), np.nan)
    defined = totals[:, 1] != 0
    values[defined] = spread_ratio(totals[defined])
    return values


def spread_ratio(totals: FloatArray) -> FloatArray:
    """Return ``linearize_ratio`` over all units; one that adds nothing has the ratio itself."""
    d = totals[:, 1:2]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = totals.sum(axis=0) / d.sum()
        ratios[1] = 1.0  # not 1 + 1e-16, which would be the ratio where all numerators are 0
        deviations = (totals - ratios * d).sum(axis=1)  # 0 for the denominator
        return np.asarray(ratios[0] + deviations * (d.size / d.sum()))


def find_ratio_interval(
    totals: FloatArray, ratio: float, error: float, t: float, *, positive: bool = False
) -> tuple[float, float]:
    """Return the score interval of a ratio of totals of units.

        all θ with (R - θ)² ≤ t² SE² V(θ) / V(R)

    V(θ) is θ (1 - θ) if each unit's ratio is from 0 to 1, as in Wilson's interval of a share, and
    θ, as of counts, if the ratio cannot be negative. Few units with a large value, such as clicks,
    make R and SE small together, so that R ± t SE is too low. It is R ± t SE if the ratio may be
    negative, or is not larger than its standard error.

    Args:
        totals: What each unit adds, as in ``linearize_ratio``.
        ratio: R.
        error: SE, its standard error.
        t: The quantile of Student's t distribution.
        positive: Whether the ratio cannot be negative, though a numerator may be.

    >>> low, high = find_ratio_interval(np.array([[9.0, 1.0], [0.0, 1.0]]), 9.0, 3.0, 1.96)
    >>> round(low, 2), round(high, 2)  # 9 counts: with R ± t SE 3.12 to 14.88
    (4.74, 17.11)

    Source:
        Wilson, JASA 1927; Garwood, "Fiducial limits for the Poisson distribution", Biometrika
        1936, for the exact interval of counts.
    """
    defined = totals[totals[:, 1] != 0]
    denominators = defined[:, 1]
    numerators = defined.sum(axis=1) - denominators
    is_positive = bool((numerators >= 0).all() and (denominators > 0).all())
    if not 0 < error <= ratio or not (is_positive or positive):
        return ratio - t * error, ratio + t * error
    if is_positive and ratio < 1 and (numerators <= denominators).all():
        return compute_wilson_interval(ratio, ratio * (1 - ratio) / error**2, t)
    centre = ratio + (t * error) ** 2 / (2 * ratio)
    half = math.sqrt(centre**2 - ratio**2)
    return centre - half, centre + half


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
        parts: The values of groups that the value summarises, by group: ``float64[1]``,
            or ``[1 + b]`` with those on each bootstrap sample.
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
    parts: Mapping[str, FloatArray] = field(default_factory=dict)
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
        if units.errors is not None:
            summary = units.errors.summarize(units.values)
        elif units.totals is not None and not units.share and summary.n > 1:
            from scipy.special import stdtrit

            error, t = summary.std / math.sqrt(summary.n), float(stdtrit(summary.n - 1, 0.975))
            low, high = find_ratio_interval(
                units.totals, summary.value, error, t, positive=units.positive
            )
            summary = replace(summary, ci_low=low, ci_high=high)
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
            low, high = compute_wilson_interval(mean, n)
        undefined = int(values.size) - n
        return cls(value=mean, std=std, n=n, undefined=undefined, ci_low=low, ci_high=high)


def compute_wilson_interval(share: Any, n: Any, z: Any = 1.959963984540054) -> tuple[Any, Any]:
    """Return Wilson's interval of proportions, at 95% by default (Wilson, JASA 1927)."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a group without values
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    return np.minimum(low, share), np.maximum(high, share)  # rounding


Bounds: TypeAlias = tuple[float, float]
"""The lowest and the highest value of a metric."""

UNBOUNDED: Bounds = (-math.inf, math.inf)
"""The bounds of a metric that can have any value."""

ROUNDING = 1e-12
"""The width of an interval of equal samples, which differ by rounding alone, as a share of it."""

_ENDPOINT = r"-?\d+(?:\.\d+)?"
_LOWEST = re.compile(rf"({_ENDPOINT}) (?:to|or more)\b")
_HIGHEST = re.compile(
    rf"(?:{_ENDPOINT} to|at most) ({_ENDPOINT})(?=\s*(?:[;,:.]|- |$))", re.IGNORECASE
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
    >>> row = Measurement(0.5, n=2, undefined=0, ci_low=0.5, ci_high=0.5, own_interval=True)
    >>> limit_interval(row, UNBOUNDED).ci_low  # two users with one value
    nan
    """
    ends = (measurement.ci_low, measurement.ci_high)
    if measurement.units is not None and not measurement.own_interval:
        ends = widen_ends(ends, bounds, measurement.value, measurement.n)
    if ends[1] - ends[0] <= ROUNDING * max(map(abs, ends)):
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
