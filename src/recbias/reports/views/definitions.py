"""What each metric of a run means, and which of two figures is the better one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from recbias.core.measurements.scores import Direction, to_loss
from recbias.core.suggestions import normalize_name
from recbias.reports.views.run_tables import RunTables

WORDS: Mapping[Direction, str] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "nearer to 0 is better",
    "none": "neither way is better",
}

ACCURACY = (
    "nDCG",
    "MAP",
    "MRR",
    "Recall",
    "Precision",
    "HR",
    "F1",
    "R-Precision",
    "mean_precision",
)
"""Names of accuracy metrics, the one to show first in front."""

POPULARITY = ("log_popularity_difference", "ARP", "popularity_lift", "Gini")
"""Names of popularity metrics, the one to show first in front."""


@dataclass(frozen=True)
class Definition:
    """What a metric of the run is.

    Args:
        title: What heads its column: ``nDCG@10``.
        name: The plug-in's name.
        direction: Which way is better.
        summary: One sentence.
        formula: The formula, in plain text.
        values: The range.
        source: The paper.
        unit: What its per-unit values are of, or blank.
        parameters: Its settings.
    """

    title: str
    name: str
    direction: Direction = "none"
    summary: str = ""
    formula: str = ""
    values: str = ""
    source: str = ""
    unit: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


def title_of(metric: str, k: float | None) -> str:
    """Return what heads a metric's column.

    >>> title_of("nDCG", 10.0), title_of("R-RIPA", float("nan"))
    ('nDCG@10', 'R-RIPA')
    """
    return metric if k is None or math.isnan(k) else f"{metric}@{k:.0f}"


@lru_cache(maxsize=2)
def definitions(run: RunTables) -> Mapping[str, Definition]:
    """Return the definition of every metric in ``metrics.csv``, by title, in its order.

    A metric that the manifest does not define has direction ``none``.
    """
    known = {title_of(each["metric"], each.get("k")): each for each in _entries(run)}
    by_metric = {each["metric"]: each for each in _entries(run)}
    pairs = run.metrics[["metric", "k"]].drop_duplicates().to_numpy().tolist()
    found = {}
    for metric, k in pairs:
        title = title_of(metric, k)
        found[title] = _definition(title, known.get(title) or by_metric.get(metric) or {})
    return found


def _entries(run: RunTables) -> list[Mapping[str, Any]]:
    return [each for each in run.manifest.get("metrics", []) if "metric" in each]


def _definition(title: str, entry: Mapping[str, Any]) -> Definition:
    direction: Direction = entry.get("direction", "none")
    return Definition(
        title=title,
        name=str(entry.get("name") or title.partition("@")[0].partition("(")[0]),
        direction=direction if direction in WORDS else "none",
        parameters=entry.get("parameters") or {},
        **{
            each: str(entry.get(each) or "")
            for each in ("summary", "formula", "values", "source", "unit")
        },
    )


def first_of(found: Iterable[Definition], names: Iterable[str]) -> Definition | None:
    """Return the definition whose name stands first in ``names``, or None."""
    by_name: dict[str, Definition] = {}
    for each in found:
        by_name.setdefault(normalize_name(each.name), each)
    return next(
        (by_name[normalize_name(name)] for name in names if normalize_name(name) in by_name), None
    )


def accuracy_metric(found: Iterable[Definition]) -> Definition | None:
    """Return nDCG, else the first accuracy metric the run has, else None."""
    return first_of(found, ACCURACY)


def popularity_metric(found: Iterable[Definition]) -> Definition | None:
    """Return the popularity metric the run is shown by, or None."""
    return first_of(found, POPULARITY)


def best(values: Iterable[float], direction: Direction) -> list[bool]:
    """Return which figures are the best: ties all are, NaN never is, and none without a direction.

    >>> best([0.1, 0.3, 0.3, float("nan")], "higher")
    [False, True, True, False]
    """
    bad = [to_loss(each, direction) for each in values]
    least = min((each for each in bad if not math.isnan(each)), default=math.nan)
    return [each == least for each in bad]
