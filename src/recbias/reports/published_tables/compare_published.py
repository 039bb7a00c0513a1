"""A run's figures beside those of papers, which come with the package as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from recbias.core.errors import MixedRuns
from recbias.core.suggestions import normalize_name
from recbias.reports.published_tables.matching import joined
from recbias.reports.published_tables.sources import (
    PublishedTable,
    about,
    list_published,
    load_published,
)
from recbias.reports.views.definitions import Definition, definitions, title_of
from recbias.reports.views.headline import ALL, datasets, headline
from recbias.reports.views.run_tables import RunTables, rows_of

__all__ = [
    "COLUMNS",
    "about",
    "comparable",
    "compare_with",
    "list_published",
    "load_published",
    "remarks",
]

COLUMNS = (
    *("table", "system", "metric", "k", "published", "published_std", "measured", "difference"),
    *("relative", "within"),
)
_ROUNDING = 1e-12


def compare_with(run: RunTables, name: str, *, tolerance: float = 0.01) -> pd.DataFrame:
    """Return the run's figures beside a published table's.

    A model meets a published system by its label, else by its plug-in's name, else by that name
    without the library in front; case, hyphens and underscores do not matter. Where the run has
    several datasets the first one is compared, unless the table tells them apart: then each is,
    by its label, and their mean.

    Args:
        run: The run.
        name: A name of ``list_published``.
        tolerance: The largest difference, in the metric's own unit, that counts as within.

    Returns:
        The columns of ``reference.csv``, one row for each figure that both have. ``system`` is
        the run's label; ``metric`` is the published name.

    Raises:
        UnknownName: No table is called so.
        MixedRuns: The table holds no figures that a run could have.
    """
    table = comparable(name)
    if table.joins:
        published = rows_of(load_published(table.name))
        pairs = joined(run, published, table.joins)
        found = [_row(table.name, model, row, value, tolerance) for model, row, value in pairs]
        return pd.DataFrame(found, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    figures = _figures(run)
    labels = _labels(run, table)
    titles = _titles(run, table)
    rows = []
    for row in rows_of(load_published(table.name)):
        title = titles.get((row["metric"], row["cutoff"]), "")
        rows += [
            _row(table.name, label, row, figures[label, title], tolerance)
            for label in labels.get(normalize_name(row["system"]), [])
            if (label, title) in figures and not math.isnan(row["value"])
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def comparable(name: str) -> PublishedTable:
    """Return what is known of a published table that a run can stand beside.

    Raises:
        UnknownName: No table is called so.
        MixedRuns: The table holds no figures that a run could have.
    """
    table = about(name)
    if not table.comparable:
        able = [each for each in list_published() if about(each).comparable]
        said = f"{table.name} ({table.title}) has no figures that a run could have"
        raise MixedRuns(said, remedy=f"compare with {', '.join(able)}")
    return table


def remarks(run: RunTables, name: str) -> list[str]:
    """Return what cannot be equal between a run and a published table, and what is left out.

    Raises:
        UnknownName: No table is called so.
    """
    table = about(name)
    published = load_published(table.name)
    known = {normalize_name(each): each for each in published["system"].unique() if each}
    matched = _labels(run, table)
    absent = [each for key, each in known.items() if key not in matched and not table.joins]
    said = [f"{table.title}. {table.citation}", *table.remarks]
    printed = ", ".join(each for each in published["dataset"].unique() if each)
    ours = ", ".join(str(each.get("name")) for each in run.manifest.get("datasets", []))
    if printed and ours:
        said.append(f"Published for {printed}; this run is of {ours}.")
    if absent:
        said.append(f"Published, and not in this run: {', '.join(absent)}.")
    single = [each for each in datasets(run) if each != ALL]
    if len(single) > 1 and not any("dataset" in each.match for each in table.joins):
        said.append(f"Of the run's datasets, {single[0]} is compared.")
    return said


def _row(
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


def _figures(run: RunTables) -> dict[tuple[str, str], float]:
    """Return the headline's figures of the first dataset by model and metric."""
    frame = headline(run, run.metrics)
    single = [each for each in datasets(run) if each != ALL]
    whole = (frame["group"] == "") & (frame["target"] == "")
    return {
        (row["model"], title_of(row["metric"], row["k"])): row["value"]
        for row in rows_of(frame[whole & frame["dataset"].isin(single[:1])])
    }


def _labels(run: RunTables, table: PublishedTable) -> dict[str, list[str]]:
    """Return the labels of the run's models for each published system that they meet."""
    published = {
        normalize_name(each) for each in load_published(table.name)["system"].unique() if each
    }
    ours = {normalize_name(other): normalize_name(each) for each, other in table.systems.items()}
    found: dict[str, dict[int, list[str]]] = {}
    for each in run.manifest.get("models", []):
        label, name = str(each.get("label")), str(each.get("name"))
        for rank, said in enumerate((label, name, name.rpartition("/")[2])):
            key = ours.get(normalize_name(said), normalize_name(said))
            if key in published:
                found.setdefault(key, {}).setdefault(rank, []).append(label)
                break
    return {key: ranks[min(ranks)] for key, ranks in found.items()}


def _titles(run: RunTables, table: PublishedTable) -> dict[tuple[str, Any], str]:
    """Return the title of our metric for each published metric and cutoff."""
    known = list(definitions(run).values())
    pairs = load_published(table.name)[["metric", "cutoff"]].drop_duplicates()
    found = {}
    for metric, cutoff in pairs.itertuples(index=False):
        wanted, _, label = table.metrics.get(metric, metric).partition(":")
        same = [
            each
            for each in known
            if normalize_name(each.name) == normalize_name(wanted)
            and each.title == title_of(each.title.partition("@")[0], cutoff)
            and _of_label(each, label)
        ]
        chosen = [each for each in same if _detector(each) == table.detector] or same
        if len(chosen) == 1 or (chosen and not label):
            found[metric, cutoff] = chosen[0].title
    return found


def _of_label(known: Definition, label: str) -> bool:
    return not label or str(known.parameters.get("label", "")).rpartition(".")[2] == label


def _detector(known: Definition) -> str:
    return normalize_name(str(known.parameters.get("label", "")).partition(".")[0])
