"""The values of a comparison of runs that are out of tolerance (``--fail-over``).

Runs that report the values of groups alone have the gaps between them added.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from recbias.core.measures import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS, POOLED
from recbias.reports.run import to_records
from recbias.reports.views import Definition, format_title
from recbias.reports.wording import format_count
from recbias.runner.gates import Tolerances, is_within, measure_distance, measure_worsening
from recbias.runs.compare import Renaming, RunFrames, list_missing

_FAMILY = [name for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS) if name != "group"]
_GROUPING = frozenset({"gap", "min_group", "reference_group", "pairs"})


def _define_gaps(definitions: Mapping[str, Definition]) -> dict[str, Definition]:
    """Return the gap of each metric with groups, by the title of that metric."""
    present = [_identify(metric) for metric in definitions.values() if metric.gap == "difference"]
    return {
        title: _define_gap(metric)
        for title, metric in definitions.items()
        if metric.parameters.get("gap") == "groups" and _identify(metric) not in present
    }


def define_all_gaps(
    definitions: Sequence[Mapping[str, Definition]], renamings: Sequence[Renaming]
) -> list[dict[str, Definition]]:
    """Return the gaps of each run, also of metrics that have the name of the first run."""
    gaps = [_define_gaps(metrics) for metrics in definitions]
    names = {item.name_a for item in renamings if item.column == "metric"}
    renamed = {
        title: gap
        for title, gap in gaps[0].items()
        if title in names or title.rpartition("@")[0] in names
    }
    return [{**renamed, **of_run} for of_run in gaps]


def add_gaps(run: RunFrames, gaps: Mapping[str, Definition]) -> RunFrames:
    """Return a run with the values of its gaps: the largest minus the smallest mean of a group.

    As for ``gap: difference``, groups of fewer than ``min_group`` defined values are excluded, and
    the gap is undefined if a mean is, or if there is one group only. The gap over seeds and folds
    is that of the means over them.
    """
    rows = [*_measure_gaps(run.metrics, gaps)]
    return replace(run, metrics=pd.concat([run.metrics, pd.DataFrame(rows)])) if rows else run


def _measure_gaps(
    metrics: pd.DataFrame, gaps: Mapping[str, Definition]
) -> Iterator[dict[str, Any]]:
    is_mean = metrics["dataset"].isin([ALL, POOLED])
    families = metrics[~is_mean & (metrics["group"].fillna("") != "")]
    for values, groups in families.groupby(_FAMILY, sort=False, dropna=False):
        keys: dict[str, Any] = dict(zip(_FAMILY, values, strict=True))
        k = None if pd.isna(keys["k"]) else float(keys["k"])
        if (gap := gaps.get(format_title(keys["metric"], k))) is not None:
            least = int(gap.parameters.get("min_group") or 0)
            means = groups.loc[groups["n"] >= least, "value"]
            spread = means.max(skipna=False) - means.min(skipna=False)
            value = float(spread) if len(means) > 1 else float("nan")
            yield keys | {"metric": _name_gap(keys["metric"], gap), "group": "", "value": value}


def _define_gap(metric: Definition) -> Definition:
    gap = replace(metric, direction="lower", parameters={**metric.parameters, "gap": "difference"})
    label, at, cutoff = metric.title.rpartition("@")
    has_cutoff = bool(at) and cutoff.isdecimal()
    title = _name_gap(label if has_cutoff else metric.title, gap)
    return replace(gap, title=f"{title}@{cutoff}" if has_cutoff else title)


def _name_gap(label: str, gap: Definition) -> str:
    """Return the label of a gap from that of the groups, as a spec gives it."""
    least = gap.parameters.get("min_group")
    suffix = f", gap=difference, min_group={least}" if least else ", gap=difference"
    return f"{label[:-1]}{suffix})" if label.endswith(")") else f"{label}{suffix}"


def _identify(metric: Definition) -> tuple[str, dict[str, Any]]:
    settings = {key: value for key, value in metric.parameters.items() if key not in _GROUPING}
    return metric.name, settings


_PLACE = ("dataset", "seed", "fold", "group", "target")


def find_worse_values(
    table: pd.DataFrame, definitions: Mapping[str, Definition], tolerances: Tolerances
) -> list[dict[str, Any]]:
    """Return the rows of ``compare_runs`` that became worse by more than their tolerance."""
    excesses = []
    for row in to_records(table):
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
    pair: Sequence[RunFrames],
    definitions: Mapping[str, Definition],
    tolerances: Tolerances,
) -> list[dict[str, Any]]:
    """Return the metrics of each model with a tolerance whose values a later run lacks."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    a, b = pair
    for row in to_records(list_missing(a, b)):
        title = format_title(row["metric"], float(row["k"] or "nan"))
        if math.isfinite(tolerances.find_limit(definitions[title].names)):
            counts[title, row["model"], a.label, b.label] += 1
    return [
        dict(zip(("metric", "model", "a", "b"), keys, strict=True)) | {"missing": n}
        for keys, n in counts.items()
    ]


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
    if "missing" in row:
        values = format_count(row["missing"], "value")
        return (
            f"out of tolerance: {metric.heading} of {row['model']}: "
            f"{row['b']} lacks {values} of {row['a']}"
        )
    place = " ".join(filter(None, (row["group"], row["target"])))
    subject = f"{metric.name_values(row['group'])} of {row['model']}"
    subject += f" for {place}" if place else ""
    further = "further from 0" if row["direction"] in {"zero", "none"} else "worse"
    return (
        f"out of tolerance: {subject} is {row['new']:.4g} in {row['b']}, {row['old']:.4g} in "
        f"{row['a']}: {further} by {row['worse_by']:.4g}, more than {row['tolerance']:g}"
    )
