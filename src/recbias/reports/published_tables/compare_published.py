"""Comparison of a run with the published tables that are packaged as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from recbias.core.errors import MixedRuns
from recbias.core.suggestions import normalize_name
from recbias.reports.published_tables.matching import match_rows
from recbias.reports.published_tables.sources import (
    PublishedTable,
    list_published,
    load_published,
    read_source,
)
from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headline import list_single_datasets, select_headline
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables, to_records

COLUMNS = (
    *("table", "system", "metric", "k", "published", "published_std", "measured", "difference"),
    *("relative", "within"),
)
_ROUNDING = 1e-12


def compare_published(run: RunTables, name: str, *, tolerance: float = 0.01) -> pd.DataFrame:
    """Compare the estimates of a run with a published table.

    A model matches a published system by its label, else by the name of its plug-in, else by
    that name without the library prefix; case, hyphens and underscores are ignored. If the run
    has several datasets, the first one is compared, unless the table distinguishes datasets: then
    each is compared by its label, and so is their mean.

    Args:
        run: The run.
        name: A name of ``list_published``.
        tolerance: The largest difference, in the metric's unit, that counts as within.

    Returns:
        The columns of ``reference.csv``, with one row for each value that both have. ``system`` is
        the run's label; ``metric`` is the published name.

    Raises:
        UnknownName: There is no such table.
        MixedRuns: The table has no values that a run could have.
    """
    table = require_comparable(name)
    published = to_records(load_published(table.name))
    if table.joins:
        matches = match_rows(run, published, table.joins)
        rows = [_build_row(table.name, *match, tolerance) for match in matches]
        return pd.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    estimates = _collect_estimates(run)
    labels = _match_systems(run, table)
    titles = _match_metrics(run, table)
    rows = []
    for row in published:
        title = titles.get((row["metric"], row["cutoff"]), "")
        rows += [
            _build_row(table.name, label, row, estimates[label, title], tolerance)
            for label in labels.get(normalize_name(row["system"]), [])
            if (label, title) in estimates and not math.isnan(row["value"])
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def require_comparable(name: str) -> PublishedTable:
    """Return the description of a published table that a run can be compared with.

    Raises:
        UnknownName: There is no such table.
        MixedRuns: The table has no values that a run could have.
    """
    table = read_source(name)
    if not table.comparable:
        comparable = [name for name in list_published() if read_source(name).comparable]
        message = f"{table.name} ({table.title}) has no figures that a run could have"
        raise MixedRuns(message, remedy=f"compare with {', '.join(comparable)}")
    return table


def list_remarks(run: RunTables, name: str) -> list[str]:
    """Return why values of a run and a published table differ, and what is not compared.

    Raises:
        UnknownName: There is no such table.
    """
    table = read_source(name)
    published = load_published(table.name)
    remarks = [f"{table.title}. {table.citation}", *table.remarks]
    published_data = ", ".join(filter(None, published["dataset"].unique()))
    names = dict.fromkeys(str(item.get("name")) for item in run.manifest.get("datasets", []))
    datasets = ", ".join(names)
    if published_data and datasets:
        remarks.append(f"Published for {published_data}; this run uses {datasets}.")
    matched = _match_systems(run, table)
    systems = {normalize_name(system): system for system in filter(None, published["system"])}
    absent = [system for key, system in systems.items() if key not in matched and not table.joins]
    if absent:
        remarks.append(f"Published, but not in this run: {', '.join(absent)}.")
    single = list_single_datasets(run)
    if len(single) > 1 and not any("dataset" in join.match for join in table.joins):
        remarks.append(f"Only the dataset {single[0]} of the run is compared.")
    return remarks


def _build_row(
    table: str, label: str, row: Mapping[str, Any], measured: float, tolerance: float
) -> dict[str, object]:
    difference = measured - row["value"]
    return {
        "table": table,
        "system": label,
        "metric": row["metric"],
        "k": row["cutoff"],
        "published": row["value"],
        "published_std": row["std"],
        "measured": measured,
        "difference": difference,
        "relative": difference / row["value"] if row["value"] else math.nan,
        "within": abs(difference) <= tolerance + _ROUNDING,
    }


def _collect_estimates(run: RunTables) -> dict[tuple[str, str], float]:
    """Return the headline estimates of the first dataset by model and metric."""
    frame = select_headline(run, run.metrics)
    single = list_single_datasets(run)
    overall = (frame["group"] == "") & (frame["target"] == "")
    return {
        (row["model"], format_title(row["metric"], row["k"])): row["value"]
        for row in to_records(frame[overall & frame["dataset"].isin(single[:1])])
    }


def _match_systems(run: RunTables, table: PublishedTable) -> dict[str, list[str]]:
    """Return the labels of the run's models for each published system that they match."""
    systems = set(map(normalize_name, filter(None, load_published(table.name)["system"])))
    renamed = {
        normalize_name(ours): normalize_name(published)
        for published, ours in table.systems.items()
    }
    labels: dict[str, dict[int, list[str]]] = {}
    for model in run.manifest.get("models", []):
        label, name = str(model.get("label")), str(model.get("name"))
        for rank, alias in enumerate((label, name, name.rpartition("/")[2])):
            key = renamed.get(normalize_name(alias), normalize_name(alias))
            if key in systems:
                labels.setdefault(key, {}).setdefault(rank, []).append(label)
                break
    return {key: ranks[min(ranks)] for key, ranks in labels.items()}


def _match_metrics(run: RunTables, table: PublishedTable) -> dict[tuple[str, Any], str]:
    """Return the title of the run's metric for each published metric and cutoff."""
    definitions = collect_definitions(run).values()
    pairs = load_published(table.name)[["metric", "cutoff"]].drop_duplicates()
    titles = {}
    for metric, cutoff in pairs.itertuples(index=False):
        name, _, label = table.metrics.get(metric, metric).partition(":")
        matches = [
            definition
            for definition in definitions
            if normalize_name(definition.name) == normalize_name(name)
            and definition.title == format_title(definition.title.partition("@")[0], cutoff)
            and (not label or _split_label(definition)[1] == label)
        ]
        matches = [
            match for match in matches if normalize_name(_split_label(match)[0]) == table.detector
        ] or matches
        if len(matches) == 1 or (matches and not label):
            titles[metric, cutoff] = matches[0].title
    return titles


def _split_label(definition: Definition) -> tuple[str, str]:
    """Return the detector and the value of a metric's label."""
    label = str(definition.parameters.get("label", ""))
    return label.partition(".")[0], label.rpartition(".")[2]


def build_reference_table(name: str, frame: pd.DataFrame, remarks: Sequence[str]) -> Table:
    """Return the rows of ``reference.csv`` of one published table as a table."""
    records = to_records(frame)
    numbers = ("published", "measured", "difference")
    by_metric: dict[str, list[float]] = {}
    for row in records:
        by_metric.setdefault(row["metric"], []).extend(row[column] for column in numbers)
    places = {metric: count_decimals(values) for metric, values in by_metric.items()}
    rows = tuple(
        (
            *(Cell(row["system"]), Cell(row["metric"])),
            *(
                Cell(format_value(row[column], places[row["metric"]]), row[column])
                for column in numbers
            ),
            Cell("yes" if row["within"] else "no"),
        )
        for row in records
    )
    columns = make_columns(("system", "metric", *numbers, "within"), numeric=numbers)
    notes = remarks if rows else ["It has no model and metric of this run.", *remarks]
    return Table(f"Comparison with {name}", columns, rows, tuple(notes))
