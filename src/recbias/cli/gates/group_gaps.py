"""The gaps between the groups of a metric, in runs that report the groups alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from recbias.core.measurements.columns import ALL, FIT_COLUMNS, METRIC_KEY_COLUMNS, POOLED
from recbias.reports.views.definitions import Definition, format_title
from recbias.runner.comparison.aligned_names import Renaming
from recbias.runner.comparison.run_comparison import RunFrames

_FAMILY = [name for name in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS) if name != "group"]
_GROUPING = frozenset({"gap", "min_group", "reference_group"})


def define_gaps(definitions: Mapping[str, Definition]) -> dict[str, Definition]:
    """Return the gap of each metric with groups, by the title of that metric.

    A gap has the names of the metric with ``gap: difference``. There is none for a metric beside
    which the run has that metric.
    """
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
    gaps = [define_gaps(metrics) for metrics in definitions]
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
    the gap is undefined if a mean is, or if there is one group only. There is a gap for each seed
    and fold, and none for the means over them: no mean of gaps becomes worse than all of them.
    """
    rows = [*_measure_gaps(run.metrics, gaps)]
    return replace(run, metrics=pd.concat([run.metrics, pd.DataFrame(rows)])) if rows else run


def _measure_gaps(
    metrics: pd.DataFrame, gaps: Mapping[str, Definition]
) -> Iterator[dict[str, Any]]:
    is_mean = metrics[list(FIT_COLUMNS)].isin([ALL, POOLED]).any(axis=1)
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
