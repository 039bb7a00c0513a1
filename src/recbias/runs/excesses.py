"""The values of a comparison of runs that are out of tolerance (``--fail-over``)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from recbias.reports.run import to_records
from recbias.reports.views import Definition, format_title
from recbias.reports.wording import format_count
from recbias.runner.gates import Tolerances, is_within, measure_distance, measure_worsening
from recbias.runs.compare import RunPair, is_incomparable, list_missing

_PLACE = ("dataset", "seed", "fold", "group", "target")


def find_worse_values(
    table: pd.DataFrame, definitions: Mapping[str, Definition], tolerances: Tolerances
) -> list[dict[str, Any]]:
    """Return the rows of ``RunPair.merge`` that became worse by more than their tolerance."""
    excesses = []
    for row in to_records(table[~is_incomparable(table)]):
        title = format_title(row["metric"], float(row["k"] or "nan"))
        metric = definitions[title]
        limit = tolerances.find_limit(metric.names)
        worsening = measure_worsening(row["value_a"], row["value_b"], metric.direction)
        if not is_within(worsening, limit):
            values = {"old": row["value_a"], "new": row["value_b"], "direction": metric.direction}
            keys = {name: row[name] for name in ("model", *_PLACE, "a", "b")}
            excesses.append(
                {"metric": title, **keys, **values, "worse_by": worsening, "tolerance": limit}
            )
    return excesses


def find_missing_values(
    pair: RunPair,
    definitions: Mapping[str, Definition],
    tolerances: Tolerances,
) -> list[dict[str, Any]]:
    """Return the metrics of each model with a tolerance whose values a later run lacks.

    Those that it has of other queries, and cannot be compared, are ``incomparable``.
    """
    a, b = pair.a, pair.b
    merged = pair.merge()
    tables = {"missing": list_missing(a, b), "incomparable": merged[is_incomparable(merged)]}
    rows = []
    for reason, table in tables.items():
        counts: Counter[tuple[str, str, str, str]] = Counter()
        for row in to_records(table):
            title = format_title(row["metric"], float(row["k"] or "nan"))
            if math.isfinite(tolerances.find_limit(definitions[title].names)):
                counts[title, row["model"], a.label, b.label] += 1
        rows += [
            dict(zip(("metric", "model", "a", "b"), keys, strict=True)) | {reason: n}
            for keys, n in counts.items()
        ]
    return rows


def find_distant_values(table: pd.DataFrame, tolerances: Tolerances) -> list[dict[str, Any]]:
    """Return the rows of ``compare_published`` whose distance exceeds their tolerance."""
    excesses = []
    for row in to_records(table):
        title = format_title(row["metric"], row["k"])
        limit = tolerances.find_limit([title, row["metric"]])
        distance = measure_distance(row["measured"], row["published"])
        if not is_within(distance, limit):
            values = {name: row[name] for name in ("published", "measured")}
            keys = {"metric": title, "model": row["system"], "table": row["table"]}
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
