"""The metrics of a run: definitions, column titles and directions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from recbias.core.measurements.scores import Direction, to_loss
from recbias.core.suggestions import normalize_name
from recbias.reports.views.headings import make_heading
from recbias.reports.views.run_tables import RunTables

DIRECTION_LABELS: Mapping[Direction, str] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "nearer to 0 is better",
    "none": "no preferred direction",
}

ACCURACY = (
    *("nDCG", "MAP", "MRR", "Recall", "Precision", "HR", "F1", "R-Precision"),
    "mean_precision",
)
"""Names of accuracy metrics, by preference."""

POPULARITY = ("log_popularity_difference", "ARP", "popularity_lift", "Gini")
"""Names of popularity metrics, by preference."""


@dataclass(frozen=True)
class Definition:
    """The definition of a metric of the run.

    Args:
        title: The column header: ``nDCG@10``.
        name: The plug-in's name.
        direction: Which values are better.
        summary: One sentence.
        formula: The formula in plain text.
        values: The range of the metric.
        source: The paper.
        unit: The unit of the per-unit values, or blank.
        group_direction: Which values of a group of queries are better: for a gap, whose
            ``direction`` is its own, that of the metric.
        parameters: The metric's settings.
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
    group_direction: Direction = "none"

    @property
    def heading(self) -> str:
        """The title for people: ``nDCG@10, gap by gender``."""
        has_own_label = self.gap and "gap=" not in self.title
        return make_heading(
            self.title, "" if has_own_label else str(self.parameters.get("by", ""))
        )

    @property
    def least_marked(self) -> int:
        """The least number of units of a group that is marked as the worst off."""
        return max(2, int(self.parameters.get("min_group") or 0))

    @property
    def groups_heading(self) -> str:
        """The heading of the groups of queries between which this is the gap."""
        if not self.gap:
            return self.heading
        title = re.sub(r"(, )?gap=\w+(, min_group=\d+)?", "", self.title)
        return make_heading(title, str(self.parameters.get("by", "")))

    @property
    def gap(self) -> str:
        """``difference``, ``ratio`` or ``std`` of groups of queries; blank for other metrics."""
        gap = str(self.parameters.get("gap", "")) if "by" in self.parameters else ""
        return "" if gap == "groups" else gap


def format_title(metric: str, k: float | None) -> str:
    """Return the title of a metric at a cutoff.

    >>> format_title("nDCG", 10.0), format_title("R-RIPA", float("nan"))
    ('nDCG@10', 'R-RIPA')
    """
    return metric if k is None or math.isnan(k) else f"{metric}@{k:.0f}"


@lru_cache(maxsize=2)
def collect_definitions(run: RunTables) -> Mapping[str, Definition]:
    """Return the definition of every metric in ``metrics.csv`` by title, in the file's order.

    A metric that the manifest does not define has the direction ``none``.
    """
    entries = [entry for entry in run.manifest.get("metrics", []) if "metric" in entry]
    by_title = {format_title(entry["metric"], entry.get("k")): entry for entry in entries}
    by_metric = {entry["metric"]: entry for entry in entries}
    definitions = {}
    for metric, k in run.metrics[["metric", "k"]].drop_duplicates().to_numpy().tolist():
        title = format_title(metric, k)
        definitions[title] = _define(title, by_title.get(title) or by_metric.get(metric) or {})
    return definitions


def group_definitions(run: RunTables) -> list[list[Definition]]:
    """Return the metrics of the run; those that differ in settings only are together."""
    groups: dict[tuple[str, ...], list[Definition]] = {}
    for metric in collect_definitions(run).values():
        texts = (metric.summary, metric.formula, metric.values, metric.source, metric.unit)
        groups.setdefault((metric.name, *texts), []).append(metric)
    return [*groups.values()]


def _define(title: str, entry: Mapping[str, Any]) -> Definition:
    direction: Direction = entry.get("direction", "none")
    texts = ("summary", "formula", "values", "source", "unit")
    return Definition(
        title=title,
        name=str(entry.get("name") or title.partition("@")[0].partition("(")[0]),
        direction=direction if direction in DIRECTION_LABELS else "none",
        group_direction=entry.get("group_direction", direction),
        parameters=_drop_missing_grouping(entry.get("parameters") or {}),
        **{name: str(entry.get(name) or "") for name in texts},
    )


def _drop_missing_grouping(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a metric without ``by`` where it is null: there are no groups."""
    return {key: value for key, value in parameters.items() if key != "by" or value is not None}


def select_first(definitions: Iterable[Definition], names: Iterable[str]) -> Definition | None:
    """Return the definition whose name comes first in ``names``, or None."""
    by_name = {normalize_name(metric.name): metric for metric in reversed([*definitions])}
    matches = (by_name.get(normalize_name(name)) for name in names)
    return next(filter(None, matches), None)


def select_accuracy_metric(definitions: Iterable[Definition]) -> Definition | None:
    """Return nDCG, else the first accuracy metric of the run by preference, else None."""
    return select_first(definitions, ACCURACY)


def select_popularity_metric(definitions: Iterable[Definition]) -> Definition | None:
    """Return the first popularity metric of the run by preference, or None."""
    return select_first(definitions, POPULARITY)


def flag_best(values: Iterable[float], direction: Direction) -> list[bool]:
    """Return which values are the best: all that are tied, never NaN, none without a direction.

    >>> flag_best([0.1, 0.3, 0.3, float("nan")], "higher")
    [False, True, True, False]
    """
    scores = [to_loss(value, direction) for value in values]
    least = min((score for score in scores if not math.isnan(score)), default=math.nan)
    return [score == least for score in scores]
