"""The tolerances of ``compare --fail-over``, and the values that are out of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from recbias.core.errors import OutOfRange, UnknownName, WrongType
from recbias.core.measures import Direction, to_loss
from recbias.core.text import normalize_name, suggest
from recbias.reports.run import to_records
from recbias.reports.views import Definition, format_title
from recbias.reports.wording import format_count
from recbias.runs.compare import RunPair, is_incomparable

_OPTION = "--fail-over"
_ROUNDING = 1e-12
"""Differences that exceed a tolerance by less are errors of rounding."""


@dataclass(frozen=True)
class Tolerances:
    """The largest differences that are tolerated, by metric; a blank one is of all metrics."""

    limits: Mapping[str, float]

    def require_known(self, names: Iterable[str]) -> None:
        """Raise UnknownName if a tolerance is of a metric that is not compared."""
        valid = sorted({*names})
        known = {"", *map(normalize_name, valid)}
        for metric in self.limits:
            if normalize_name(metric) not in known:
                message = f"no compared metric is called {metric!r}"
                raise UnknownName(message, where=_OPTION, remedy=suggest(metric, valid))

    def find_limit(self, names: Sequence[str], default: float = math.inf) -> float:
        """Return the tolerance of a metric, or the default if it has none.

        The first of its names that has a tolerance counts, and the last tolerance of that name.

        >>> tolerances = Tolerances({"": 0.1, "nDCG": 0.01})
        >>> tolerances.find_limit(["nDCG@10", "nDCG"]), tolerances.find_limit(["HR@10", "HR"])
        (0.01, 0.1)
        """
        by_name = {normalize_name(metric): limit for metric, limit in self.limits.items()}
        found = (by_name.get(normalize_name(name)) for name in (*names, ""))
        return next((limit for limit in found if limit is not None), default)


def parse_tolerances(texts: Iterable[str]) -> Tolerances:
    """Return the tolerances in texts such as ``0.05`` and ``nDCG@10=0.05``.

    >>> parse_tolerances(["0.1", "nDCG(by=gender, gap=difference)@10=0.05"]).limits
    {'': 0.1, 'nDCG(by=gender, gap=difference)@10': 0.05}

    Raises:
        WrongType: One has no number.
        OutOfRange: A number is negative.
    """
    limits: dict[str, float] = {}
    for text in texts:
        metric, _, number = text.rpartition("=")
        try:
            limit = float(number)
        except ValueError:
            remedy = f"write {_OPTION} 0.05, or {_OPTION} nDCG=0.05"
            raise WrongType(f"{text!r} has no number", where=_OPTION, remedy=remedy) from None
        if not 0 <= limit < math.inf:
            message = f"must be at least 0, found {number}"
            raise OutOfRange(message, where=_OPTION, remedy="give 0.05")
        limits[metric.strip()] = limit
    return Tolerances(limits)


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


def _read_title(row: Mapping[str, Any]) -> str:
    return format_title(row["metric"], float(row["k"] or "nan"))


def find_worse_values(
    pair: RunPair, definitions: Mapping[str, Definition], tolerances: Tolerances
) -> list[dict[str, Any]]:
    """Return the values of two runs that became worse by more than their tolerance."""
    excesses = []
    for row in to_records(pair.rows[~is_incomparable(pair.rows)]):
        title = _read_title(row)
        metric = definitions[title]
        limit = tolerances.find_limit(metric.names)
        worsening = measure_worsening(row["value_a"], row["value_b"], metric.direction)
        if worsening > limit + _ROUNDING:
            names = ("model", "dataset", "seed", "fold", "group", "target", "a", "b")
            excesses.append(
                {
                    "metric": title,
                    **{name: row[name] for name in names},
                    "old": row["value_a"],
                    "new": row["value_b"],
                    "direction": metric.direction,
                    "worse_by": worsening,
                    "tolerance": limit,
                }
            )
    return excesses


def find_missing_values(
    pair: RunPair, definitions: Mapping[str, Definition], tolerances: Tolerances
) -> list[dict[str, Any]]:
    """Return the metrics of each model with a tolerance whose values a later run lacks.

    Those that it has of other queries, and cannot be compared, are ``incomparable``.
    """
    rows = []
    different = pair.rows[is_incomparable(pair.rows)]
    for reason, table in {"missing": pair.missing, "incomparable": different}.items():
        counts = Counter(
            (title, row["model"])
            for row in to_records(table)
            if math.isfinite(tolerances.find_limit(definitions[title := _read_title(row)].names))
        )
        sides = {"a": pair.a.label, "b": pair.b.label}
        rows += [
            {"metric": title, "model": model, **sides, reason: n}
            for (title, model), n in counts.items()
        ]
    return rows


def find_distant_values(table: pd.DataFrame, tolerances: Tolerances) -> list[dict[str, Any]]:
    """Return the rows of ``compare_published`` whose distance exceeds their tolerance.

    The distance is infinite where only one of the values is undefined.
    """
    excesses = []
    for row in to_records(table):
        title, pair = format_title(row["metric"], row["k"]), (row["measured"], row["published"])
        limit, distance = tolerances.find_limit([title, row["metric"]]), abs(pair[0] - pair[1])
        if math.isnan(distance):
            distance = 0.0 if all(map(math.isnan, pair)) else math.inf
        if distance > limit + _ROUNDING:
            keys = {"metric": title, "model": row["system"], "table": row["table"]}
            values = {name: row[name] for name in ("published", "measured")}
            excesses.append({**keys, **values, "distance": distance, "tolerance": limit})
    return excesses


def list_published_names(table: pd.DataFrame) -> list[str]:
    """Return the names by which a tolerance may select a published metric."""
    rows = to_records(table[["metric", "k"]])
    return [
        name for row in rows for name in (format_title(row["metric"], row["k"]), row["metric"])
    ]


def explain_distance(row: Mapping[str, Any]) -> str:
    """Return the sentence on a value that is too far from the published one."""
    return (
        f"out of tolerance: {row['metric']} of {row['model']} is {row['measured']:.4g}, "
        f"published {row['published']:.4g}: differs by {row['distance']:.4g}, "
        f"more than {row['tolerance']:g}"
    )


def explain_excess(row: Mapping[str, Any], metric: Definition) -> str:
    """Return the sentence on a value that became worse, or that the later run lacks."""
    place = f"out of tolerance: {metric.heading} of {row['model']}:"
    if "missing" in row:
        values = format_count(row["missing"], "value")
        return f"{place} {row['b']} lacks {values} of {row['a']}"
    if "incomparable" in row:
        values = format_count(row["incomparable"], "value")
        return f"{place} not comparable, {values} of {row['b']} of other queries than {row['a']}"
    place = " ".join(filter(None, (row["group"], row["target"])))
    subject = f"{metric.name_values(row['group'])} of {row['model']}"
    subject += f" for {place}" if place else ""
    further = "further from 0" if row["direction"] in {"zero", "none"} else "worse"
    return (
        f"out of tolerance: {subject} is {row['new']:.4g} in {row['b']}, {row['old']:.4g} in "
        f"{row['a']}: {further} by {row['worse_by']:.4g}, more than {row['tolerance']:g}"
    )
