"""The headline rows of a run: means over seeds and folds where there are several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import add
from typing import Any

import pandas as pd

from recbias.core.measurements import columns
from recbias.core.queries.uncertain_groups import parse_uncertain_label
from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.run_tables import RunTables, to_records

ALL = columns.ALL
"""The value of ``dataset``, ``seed`` or ``fold`` in rows that hold the mean over all of them."""


def list_datasets(run: RunTables) -> list[str]:
    """Return the datasets of ``metrics.csv``: ``all`` first, then in the manifest's order."""
    labels = [ALL, *(str(dataset.get("label")) for dataset in run.manifest.get("datasets", []))]
    return _sort_by(labels, run.metrics["dataset"])


def list_single_datasets(run: RunTables) -> list[str]:
    """Return the datasets, without the mean over all of them."""
    return [dataset for dataset in list_datasets(run) if dataset != ALL]


def list_models(run: RunTables) -> list[str]:
    """Return the models of ``metrics.csv`` in the manifest's order, unlisted models last."""
    labels = [str(model.get("label")) for model in run.manifest.get("models", [])]
    return _sort_by(labels, run.metrics["model"])


def _sort_by(labels: Sequence[str], column: pd.Series) -> list[str]:
    position = {label: number for number, label in enumerate(labels)}
    return sorted(column.unique(), key=lambda name: position.get(name, len(position)))


@lru_cache(maxsize=2)
def collect_estimates(run: RunTables) -> pd.DataFrame:
    """Return ``run.metrics`` with the numbers of units in the rows that hold means.

    In the file, ``n`` and ``undefined`` of these rows count the values that are averaged. Here a
    mean over seeds and folds has the smallest ``n`` of them that is not 0 and the largest
    ``undefined``; both are added over datasets. The groups of queries that tests compare have the
    values of ``groups.csv``: means over units, each with its mean over seeds and folds. The
    undefined values of a gap are those of the compared groups, NaN where these have no rows.
    """
    estimates = replace_groups(_count_units(run.metrics), run.groups)
    return estimates if run.groups is None else _count_compared(run, estimates)


def _count_units(metrics: pd.DataFrame) -> pd.DataFrame:
    counts = ["n", "undefined"]
    is_mean = (metrics[["dataset", "seed", "fold"]] == ALL).any(axis=1)
    if not is_mean.any():
        return metrics
    single = metrics[~is_mean & (metrics["dataset"] != columns.POOLED)]
    single = single.assign(n=single["n"].where(single["n"] > 0))
    keys = ["model", *columns.METRIC_KEY_COLUMNS]
    groups = single.groupby(["dataset", *keys], dropna=False, sort=False)[counts]
    units = groups.agg({"n": "min", "undefined": "max"}).reset_index()
    totals = units.groupby(keys, dropna=False, sort=False)[counts].sum().reset_index()
    units = pd.concat([units, totals.assign(dataset=ALL)])
    found = metrics[["dataset", *keys]].merge(units, "left", on=["dataset", *keys])
    found = found[counts].fillna({"n": 0.0}).set_axis(metrics.index)
    return metrics.assign(**{name: metrics[name].where(~is_mean, found[name]) for name in counts})


def replace_groups(metrics: pd.DataFrame, groups: pd.DataFrame | None) -> pd.DataFrame:
    """Return ``metrics`` with the rows of ``groups`` instead of those of the same keys."""
    if groups is None:
        return metrics
    keys = [*columns.FIT_COLUMNS, *columns.METRIC_KEY_COLUMNS]
    found = metrics[keys].merge(groups, "left", on=keys, indicator=True)
    is_group = (found.pop("_merge") == "both").to_numpy()
    values = list(columns.VALUE_COLUMNS)
    replaced = metrics.copy()
    replaced.loc[is_group, values] = found.loc[is_group, values].to_numpy()
    others = groups.merge(metrics[keys], "left", on=keys, indicator=True)
    others = others[others.pop("_merge") == "left_only"]
    return pd.concat([replaced, others], ignore_index=True)


def _count_compared(run: RunTables, estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the estimates; ``undefined`` of a gap counts the units of the compared groups.

    Of groups known as probabilities each holds all units, which are counted once.
    """
    definitions, records = collect_definitions(run), to_records(estimates)
    metrics = [definitions.get(format_title(row["metric"], row["k"])) for row in records]
    compared: dict[tuple[str, ...], float] = {}
    for row, metric in zip(records, metrics, strict=True):
        if metric and row["group"] and row["n"] >= int(metric.parameters.get("min_group") or 0):
            key = _identify_groups(row, metric)
            before = compared.get(key, 0)
            is_uncertain = parse_uncertain_label(str(metric.parameters.get("by"))) is not None
            compared[key] = (max if is_uncertain else add)(before, row["undefined"])
    undefined = [
        compared.get(_identify_groups(row, metric), math.nan)
        if metric and metric.gap and not row["group"] and not math.isnan(row["value"])
        else row["undefined"]
        for row, metric in zip(records, metrics, strict=True)
    ]
    return estimates.assign(undefined=undefined)


def _identify_groups(row: Mapping[str, Any], metric: Definition) -> tuple[str, ...]:
    """Return what the rows of groups and of their gaps share."""
    settings = sorted((name, repr(v)) for name, v in metric.parameters.items() if name != "gap")
    return (*get_place(row), str(row["model"]), str(row["target"]), metric.name, repr(settings))


def describe_means(run: RunTables) -> list[str]:
    """Return what n and the interval of the means of a run are based on, if it has any."""
    varying = select_varying(run.metrics, ["seed", "fold"])
    notes = []
    each, over = " and ".join(varying), " and ".join(f"{name}s" for name in varying)
    if varying and run.groups is not None:
        notes.append(
            f"Means over {over}: each unit has the mean of its values, n counts units, and the "
            "interval is that of the units' means."
        )
    elif varying:
        notes.append(
            f"Means over {over}: n counts the units of each {each} (the smallest number, if they "
            f"differ); the interval is that of each unit's mean over {over}, and there is none if "
            "only some of the units are the same."
        )
    if ALL in list_datasets(run):
        notes.append(
            "Means over datasets: n adds up the units of the datasets; the interval treats the "
            "datasets as a sample."
        )
    return notes


def select_headline(run: RunTables, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds and folds, else the rows of the first seed and fold."""
    headlines = []
    for name in list_datasets(run):
        rows = frame[frame["dataset"] == name]
        for column in ("seed", "fold"):
            values = rows[column].unique().tolist()
            if len(values) > 1:
                rows = rows[rows[column] == (ALL if ALL in values else values[0])]
        headlines.append(rows)
    return pd.concat(headlines) if headlines else frame


def select_varying(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the columns that hold more than one value."""
    return [column for column in columns if len(frame[column].unique()) > 1]


def get_place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the dataset, seed and fold of a row."""
    return str(row["dataset"]), str(row["seed"]), str(row["fold"])


def rank_label(text: str) -> tuple[bool, int, str]:
    """Return a sort key: ``all`` first, then numbers by value, then text.

    >>> sorted(["10", "2", "all"], key=rank_label)
    ['all', '2', '10']
    """
    return text != ALL, int(text) if text.isascii() and text.isdigit() else 0, text
