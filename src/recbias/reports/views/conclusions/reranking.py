"""What re-ranking removes of each measure of bias and what it costs, from ``tradeoffs.csv``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recbias.reports.markup import to_line
from recbias.reports.tradeoff_table import is_unbounded, name_reranker, select_tradeoffs
from recbias.reports.views.definitions import Definition, collect_definitions
from recbias.reports.views.headings import make_heading
from recbias.reports.views.headline import list_single_datasets
from recbias.reports.views.rounding import count_decimals, format_interval, format_value
from recbias.reports.views.run_tables import RunTables

MOST_VERSIONS = 3
"""How many re-ranked versions a sentence names: those that remove most."""

_VERBS = {
    "lower": ("lowers it", "raises it"),
    "higher": ("raises it", "lowers it"),
    "zero": ("brings it nearer to 0", "takes it farther from 0"),
    "none": ("improves it", "worsens it"),
}
"""What less and more bias is, by the direction of the measure."""

_DETAIL = (
    "Of each re-ranker the setting that removes most; intervals are not corrected for this choice."
    " Price: accuracy lost for one unit of bias removed, where some is removed."
)

Row = Mapping[str, Any]


def describe_reranking(run: RunTables) -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, dataset, a sentence and its detail for each measure of bias of the run.

    The measures of which a version is shown to remove something are first, else in the order of
    ``tradeoffs.csv``; only the first has the detail, which is that of all. Nothing without
    re-ranking.
    """
    detail = _DETAIL
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in select_tradeoffs(run):
        groups.setdefault((row["dataset"], row["bias"], row["target"]), []).append(row)
    definitions, several = collect_definitions(run), len(list_single_datasets(run)) > 1
    for (dataset, bias, target), rows in sorted(groups.items(), key=lambda item: _rank(item[1])):
        metric = definitions.get(bias) or Definition(bias, bias)
        versions = _select_versions(rows)
        if versions:
            where = f" on {to_line(dataset)}" if several else ""
            texts = [_describe(row, metric) for row in versions[:MOST_VERSIONS]]
            more = len(versions) - len(texts)
            rest = f"; {more:,} more in the table" if more else ""
            lead = f"{to_line(metric.describe_value(target=target))}{where}"
            yield bias, dataset, f"{lead}: {'; '.join(texts)}{rest}.", detail
            detail = ""


def _rank(rows: Sequence[Row]) -> bool:
    return not any(row["bias_removed_low"] > 0 for row in rows)


def _select_versions(rows: Sequence[Row]) -> list[Row]:
    """Return the version of each model and re-ranker that removes most, the largest first."""
    best: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: -float(row["bias_removed"])):
        if not math.isnan(row["bias_removed"]):
            best.setdefault((row["baseline"], name_reranker(row)), row)
    return [*best.values()]


def _describe(row: Row, metric: Definition) -> str:
    """Return a version with what it removes, what it costs, and the price if that is known."""
    name, setting, strength = name_reranker(row), row["setting"], row["strength"]
    if not math.isnan(strength) and f"{setting}=" not in name:
        name = f"{name} ({setting} {strength:g})"
    subject = to_line(f"{name} of {row['baseline']}")
    low, removed, high = (row[f"bias_removed{end}"] for end in ("_low", "", "_high"))
    if removed == 0:
        effect = f"{subject} does not change it"
    elif low <= 0 <= high:
        effect = f"{subject} is not shown to change the bias: {_state(row, 'bias_removed')} less"
    else:
        verb = _VERBS[metric.direction][removed < 0]
        effect = f"{subject} {verb} by {_state(row, 'bias_removed', signed=False)}"
    gains = row["accuracy_lost"] < 0
    cost = _state(row, "accuracy_lost", make_heading(row["accuracy"]), signed=False)
    price = "" if math.isnan(row["price"]) else f", price {_state(row, 'price')}"
    return f"{effect} {'and gains' if gains else 'at'} {cost}{price}"


def _state(row: Row, name: str, unit: str = "", *, signed: bool = True) -> str:
    """Return a figure of a row with its interval; not ``signed``: its size."""
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    if value < 0 and not signed:
        value, low, high = -value, -high, -low
    places = count_decimals([value])
    interval = format_interval(low, high, places)
    bounds = f"95% interval {interval}" if interval else "no interval"
    if name == "price" and is_unbounded(row):
        bounds = "unbounded interval"
    return f"{format_value(value, places)}{f' {to_line(unit)}' if unit else ''} ({bounds})"
