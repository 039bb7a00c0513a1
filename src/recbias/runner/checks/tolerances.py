"""Tolerances of ``recbias compare --fail-over``: how much worse a value may become."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recbias.core.errors import OutOfRange, UnknownName, WrongType
from recbias.core.measurements.scores import Direction, to_loss
from recbias.core.suggestions import normalize_name, suggest

OPTION = "--fail-over"
"""The option of the command, for messages."""

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Tolerance:
    """The largest difference that is tolerated, of one metric or, if it is blank, of all."""

    metric: str
    limit: float


def parse_tolerance(text: str) -> Tolerance:
    """Return the tolerance in ``0.05`` or ``nDCG@10=0.05``.

    >>> parse_tolerance("nDCG(by=gender, gap=difference)@10=0.05")
    Tolerance(metric='nDCG(by=gender, gap=difference)@10', limit=0.05)

    Raises:
        WrongType: It has no number.
        OutOfRange: The number is negative.
    """
    metric, _, number = text.rpartition("=")
    try:
        limit = float(number)
    except ValueError:
        remedy = f"write {OPTION} 0.05, or {OPTION} nDCG=0.05"
        raise WrongType(f"{text!r} has no number", where=OPTION, remedy=remedy) from None
    if not 0 <= limit < math.inf:
        raise OutOfRange(f"must be at least 0, found {number}", where=OPTION, remedy="give 0.05")
    return Tolerance(metric.strip(), limit)


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of a comparison; without any, nothing is out of tolerance."""

    tolerances: Sequence[Tolerance] = ()

    def require_known(self, names: Iterable[str]) -> None:
        """Raise UnknownName if a tolerance is of a metric that is not compared."""
        valid = sorted({*names})
        known = {normalize_name(name) for name in valid}
        for tolerance in self.tolerances:
            if tolerance.metric and normalize_name(tolerance.metric) not in known:
                message = f"no compared metric is called {tolerance.metric!r}"
                remedy = suggest(tolerance.metric, valid)
                raise UnknownName(message, where=OPTION, remedy=remedy)

    def find_limit(self, names: Sequence[str], default: float = math.inf) -> float:
        """Return the tolerance of a metric, or the default if it has none.

        The first of its names that has a tolerance counts, and the last tolerance of that name.

        >>> tolerances = Tolerances([Tolerance("", 0.1), Tolerance("nDCG", 0.01)])
        >>> tolerances.find_limit(["nDCG@10", "nDCG"]), tolerances.find_limit(["HR@10", "HR"])
        (0.01, 0.1)
        """
        by_name = {normalize_name(row.metric): row.limit for row in self.tolerances}
        found = (by_name.get(normalize_name(name)) for name in (*names, ""))
        return next((limit for limit in found if limit is not None), default)

    def describe(self, default: float) -> str:
        """Return the tolerances in words.

        >>> Tolerances([Tolerance("nDCG", 0.05)]).describe(0.01)
        '0.01 (nDCG: 0.05)'
        """
        special = [f"{row.metric}: {row.limit:g}" for row in self.tolerances if row.metric]
        suffix = f" ({', '.join(special)})" if special else ""
        return f"{self.find_limit([], default):g}{suffix}"


def measure_worsening(old: float, new: float, direction: Direction) -> float:
    """Return how much worse a new value is than the old one; negative if it is better.

        old - new    if higher is better
        new - old    if lower is better
        |new| - |old|  if 0 is best, and for metrics without a better direction

    Infinite if only the new value is undefined; 0 if the old one is undefined.

    >>> measure_worsening(0.5, 0.25, "higher"), measure_worsening(-0.5, 0.25, "none")
    (0.25, -0.25)
    """
    if math.isnan(old) or math.isnan(new):
        return math.inf if math.isnan(new) and not math.isnan(old) else 0.0
    judged: Direction = "zero" if direction == "none" else direction
    return to_loss(new, judged) - to_loss(old, judged)


def measure_distance(a: float, b: float) -> float:
    """Return the absolute difference, infinite where only one value is undefined.

    >>> measure_distance(0.5, 0.75), measure_distance(0.1, math.nan)
    (0.25, inf)
    """
    if math.isnan(a) or math.isnan(b):
        return 0.0 if math.isnan(a) and math.isnan(b) else math.inf
    return abs(a - b)


def is_within(difference: float, limit: float) -> bool:
    """Return whether a difference is at most the limit, apart from rounding errors.

    >>> is_within(0.3 - 0.2, 0.1)
    True
    """
    return difference <= limit + _ROUNDING
