"""The published tables that are packaged as data, and the comparison of a run with them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.errors import MixedRuns, UnknownName
from recbias.core.text import normalize_name, suggest
from recbias.reports import views, wording
from recbias.reports.run import RunTables, read_yaml, to_records
from recbias.reports.views import format_title, list_single_datasets
from recbias.reports.wording import Cell, number_cell

_ANY = "*"  # matches any text

_OVERALL = "overall"  # as the dataset, the mean over the datasets of a run, or its only one


# ---- the tables ----


@dataclass(frozen=True)
class Join:
    """The estimate of a run that a published quantity is compared with.

    Args:
        published: The published metrics.
        metric: The name of our metric.
        figure: ``value``; or a column of ``significance.csv``, a test and what it is between:
            ``statistic paired_t groups``; of two models, the second: ``p chi_squared NG``.
        only: Columns of the published table and their required values.
        match: Properties of our estimate and the text they must equal, with published columns in
            braces: ``{model: "{system} {method}"}``. The properties are ``model``, ``dataset``,
            ``group``, ``target`` and the metric's settings; ``direction top_n`` is two settings,
            of which the first alone may match. ``*`` matches any text, and a list each of its
            texts. Without ``dataset``, only the first dataset of the run matches.
        otherwise: The published model that models match whose label no published row has.
        values: Published values and ours, where they differ; a list has several of ours.
        shown: The name of the pair, with published columns in braces; by default the published
            metric, followed by the columns that ``match`` uses.
        scale: A factor for our estimate, for values published in percent.
        offset: Added to the scaled estimate: 100 and a scale of -100 for the percentage of the
            others.
    """

    published: Sequence[str]
    metric: str
    figure: str = "value"
    only: Mapping[str, str] = field(default_factory=dict)
    match: Mapping[str, str | list[str]] = field(default_factory=dict)
    otherwise: str = ""
    values: Mapping[str, str | list[str]] = field(default_factory=dict)
    shown: str = ""
    scale: float = 1.0
    offset: float = 0.0

    def applies_to(self, row: Mapping[str, Any]) -> bool:
        """Return whether a published row holds this quantity."""
        return row["metric"] in self.published and all(
            row[column] == value for column, value in self.only.items()
        )

    def format_name(self, row: Mapping[str, Any]) -> str:
        """Return the name of a published value: ``R-RIPA (CD, Sports)``."""
        if self.shown:
            return self.shown.format(**row)
        texts = [_list_texts(value)[0] for name, value in self.match.items() if name != "model"]
        details = ", ".join(text.format(**row) for text in texts if "{" in text)
        return f"{row['metric']} ({details})" if details else str(row["metric"])

    def build_criteria(self, row: Mapping[str, Any]) -> dict[str, set[str]]:
        """Return the properties of our estimate, with the texts that each may equal."""
        ours = [_list_texts(self.values.get(str(value), str(value))) for value in row.values()]
        rows = [dict(zip(row, texts, strict=True)) for texts in itertools.product(*ours)]
        return {
            name: {
                _ANY if text == _ANY else normalize_name(text.format(**texts))
                for text in _list_texts(value)
                for texts in rows
            }
            for name, value in self.match.items()
        }


def _list_texts(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class PublishedTable:
    """The description of a published table.

    Args:
        name: ``children/a3``.
        title: What the table shows.
        citation: The paper.
        metrics: Published metrics and ours, where the names differ.
        systems: Published systems and ours, where more than the spelling differs.
        detector: The detector whose labels its values use, or blank.
        remarks: Reasons why values differ, one sentence each.
        comparable: Whether a run can be compared with it.
        joins: The estimates that its quantities are compared with, where a model and a metric do
            not determine them.
        specs: The packaged specs that name it as a reference: ``papers/children/a3``.
        reason: Why no packaged spec does, one sentence; blank if one does.
    """

    name: str
    title: str
    citation: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    systems: Mapping[str, str] = field(default_factory=dict)
    detector: str = ""
    remarks: Sequence[str] = ()
    comparable: bool = True
    joins: Sequence[Join] = ()
    specs: Sequence[str] = ()
    reason: str = ""


@cache
def _read_tables() -> dict[str, PublishedTable]:
    """Return the descriptions of all tables by name, grouped by paper."""
    path = files("recbias").joinpath("reports", "published_data", "sources.yaml")
    tables = {}
    for paper, source in sorted(read_yaml(path.read_text("utf-8"))["papers"].items()):
        shared = {key: value for key, value in source.items() if key != "tables"}
        for number, table in source["tables"].items():
            own: dict[str, Any] = {
                "metrics": {**shared.get("metrics", {}), **table.get("metrics", {})},
                "remarks": [*shared.get("remarks", []), *table.get("remarks", [])],
                "joins": [Join(**join) for join in table.get("joins", [])],
            }
            name = f"{paper}/{number}"
            tables[name] = PublishedTable(name=name, **{**shared, **table, **own})
    return tables


def list_published() -> list[str]:
    """Return the names of the published tables, grouped by paper.

    >>> [name for name in list_published() if name.startswith("wok/")]
    ['wok/1', 'wok/2', 'wok/3', 'wok/text']
    """
    return [*_read_tables()]


def load_published(name: str) -> pd.DataFrame:
    """Load a published table; numeric columns are float64, all others are text.

    Args:
        name: ``children/a3``; also ``children/A.3`` or ``children/table-a-3``.

    Raises:
        UnknownName: There is no such table.
    """
    path = files("recbias").joinpath("reports", "published_data", f"{resolve_name(name)}.csv")
    with path.open("rb") as stream:
        frame = pd.read_csv(stream, dtype="str", keep_default_na=False)
    numbers = {"cutoff", "std", "ci95_half_width"} & set(frame.columns)
    if {"system", "metric", "cutoff"} <= set(frame.columns):
        numbers |= {"value"} & set(frame.columns)
    for column in numbers:
        frame[column] = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce")
    return frame


def resolve_name(name: str) -> str:
    """Return the name of a published table as ``list_published`` spells it.

    >>> resolve_name("Children/table-5-1"), resolve_name("children/A.3")
    ('children/5.1', 'children/a3')

    Raises:
        UnknownName: There is no such table.
    """
    names = {_normalize(known): known for known in list_published()}
    if _normalize(name) not in names:
        message = f"no published table is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, list_published()))
    return names[_normalize(name)]


def _normalize(name: str) -> str:
    """Return a name whose number has no ``table``, case and punctuation: ``children/51``."""
    paper, _, number = name.partition("/")
    number = re.sub(r"[^a-z0-9]", "", number.casefold()).removeprefix("table")
    return f"{normalize_name(paper)}/{number}"


def read_source(name: str) -> PublishedTable:
    """Return the description of a published table.

    Raises:
        UnknownName: There is no such table.
    """
    return _read_tables()[resolve_name(name)]


def require_comparable(name: str) -> PublishedTable:
    """Return the description of a published table that a run can be compared with.

    Raises:
        UnknownName: There is no such table.
        MixedRuns: The table has no values that a run could have.
    """
    table = read_source(name)
    if not table.comparable:
        comparable = [name for name, each in _read_tables().items() if each.comparable]
        message = f"{table.name} ({table.title}) has no figures that a run could have"
        raise MixedRuns(message, remedy=f"compare with {', '.join(comparable)}")
    return table


# ---- the comparison ----

COLUMNS = (
    *("table", "system", "metric", "k", "published", "published_std", "measured", "difference"),
    *("relative", "within"),
)
_ROUNDING = 1e-12

_Match = tuple[str, str, Mapping[str, Any], float]
"""The label of a model, the name of a published value, its row, and what was measured."""


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
    match = _match_joins if table.joins else _match_names
    rows = [
        (table.name, model, metric, row["cutoff"], row["value"], row["std"], measured)
        for model, metric, row, measured in match(run, table)
        if not math.isnan(row["value"])
    ]
    found = pd.DataFrame(rows, columns=list(COLUMNS[:7]))
    difference = found["measured"] - found["published"]
    return found.assign(
        difference=difference,
        relative=difference / found["published"].where(found["published"] != 0),
        within=difference.abs() <= tolerance + _ROUNDING,
    ).drop_duplicates(ignore_index=True)


def _match_names(run: RunTables, table: PublishedTable) -> Iterator[_Match]:
    """Yield the values of models and metrics that have the names of published ones."""
    published = load_published(table.name)
    labels, titles = _match_systems(run, table, published), _match_metrics(run, table, published)
    dataset = next(iter(list_single_datasets(run)), "")
    for row in to_records(published):
        title = titles.get((row["metric"], row["cutoff"]), "")
        values = {each["model"]: each["value"] for each in views.list_whole(run, title, dataset)}
        for label in labels.get(normalize_name(row["system"]), []):
            if label in values:
                yield label, row["metric"], row, values[label]


def _match_systems(
    run: RunTables, table: PublishedTable, published: pd.DataFrame
) -> dict[str, list[str]]:
    """Return the labels of the run's models for each published system that they match."""
    systems = set(map(normalize_name, filter(None, published["system"])))
    renamed = {normalize_name(ours): normalize_name(name) for name, ours in table.systems.items()}
    labels: dict[str, dict[int, list[str]]] = {}
    for label, names in _list_names(run).items():
        keys = [renamed.get(name, name) for name in names]
        rank = next((rank for rank, key in enumerate(keys) if key in systems), None)
        if rank is not None:
            labels.setdefault(keys[rank], {}).setdefault(rank, []).append(label)
    return {key: ranks[min(ranks)] for key, ranks in labels.items()}


def _list_names(run: RunTables) -> dict[str, list[str]]:
    """Return the names of each model: its label, its plug-in, and that without the library."""
    names = {}
    for model in run.manifest.get("models", []):
        label, name = str(model.get("label")), str(model.get("name"))
        names[label] = [*map(normalize_name, (label, name, name.rpartition("/")[2]))]
    return names


def _match_metrics(
    run: RunTables, table: PublishedTable, published: pd.DataFrame
) -> dict[tuple[str, Any], str]:
    """Return the title of the run's metric for each published metric and cutoff."""
    titles = {}
    pairs = published[["metric", "cutoff"]].drop_duplicates()
    for metric, cutoff in pairs.itertuples(index=False):
        name, _, label = table.metrics.get(metric, metric).partition(":")
        matches, detected = [], []
        for each in views.collect_definitions(run).values():
            detector, _, value = str(each.parameters.get("label", "")).rpartition(".")
            if (
                normalize_name(each.name) == normalize_name(name)
                and each.title == format_title(each.title.partition("@")[0], cutoff)
                and label in {"", value}
            ):
                matches.append(each.title)
                if normalize_name(detector.partition(".")[0]) == table.detector:
                    detected.append(each.title)
        matches = detected or matches
        if len(matches) == 1 or (matches and not label):
            titles[metric, cutoff] = matches[0]
    return titles


@dataclass(frozen=True)
class _Estimate:
    """An estimate of a run, and the texts that match its model, dataset, group and target."""

    model: str
    metric: views.Definition
    k: float
    is_first: bool
    texts: Mapping[str, set[str]]
    values: Mapping[str, float]

    def matches(self, criteria: Mapping[str, set[str]], cutoff: float) -> bool:
        """Return whether it meets the criteria; without one on group or target, it has none."""
        if "dataset" not in criteria and not self.is_first:
            return False
        same_k = math.isnan(cutoff) or math.isnan(self.k) or cutoff == self.k
        return (
            same_k
            and all(part in criteria or "" in self.texts[part] for part in ("group", "target"))
            and all(
                texts == {_ANY} or not texts.isdisjoint(self._list_texts(name))
                for name, texts in criteria.items()
            )
        )

    def _list_texts(self, name: str) -> set[str]:
        if name in self.texts:
            return self.texts[name]
        settings = [str(self.metric.parameters.get(setting)) for setting in name.split()]
        return {normalize_name(settings[0]), normalize_name(" ".join(settings))}


def _match_joins(run: RunTables, table: PublishedTable) -> Iterator[_Match]:
    """Yield the estimates that the joins of a table name; of pairs with one name the first."""
    estimates, rows = [*collect_estimates(run)], to_records(load_published(table.name))
    labels = {normalize_name(str(row.get("model_training", ""))) for row in rows}
    for row in rows:
        compared: dict[tuple[str, str], Join] = {}
        for join in table.joins:
            if not join.applies_to(row):
                continue
            criteria, name = join.build_criteria(row), join.format_name(row)
            others = {**criteria}
            if normalize_name(join.otherwise) in criteria.get("model", ()):
                others["model"] = {_ANY}
            for each in estimates:
                value = each.values.get(join.figure, math.nan)
                is_other = join.otherwise and normalize_name(each.model) not in labels
                if (
                    normalize_name(each.metric.name) == normalize_name(join.metric)
                    and not math.isnan(value)
                    and each.matches(others if is_other else criteria, row["cutoff"])
                    and compared.setdefault((each.model, name), join) is join
                ):
                    yield each.model, name, row, join.scale * value + join.offset


def collect_estimates(run: RunTables) -> Iterator[_Estimate]:
    """Yield every headline estimate of the run, of each dataset and of their mean."""
    definitions, names, single = (
        views.collect_definitions(run),
        _list_names(run),
        list_single_datasets(run),
    )
    statistics = _collect_statistics(run)
    for row in to_records(views.select_headline(run, run.metrics)):
        dataset, model, title = row["dataset"], row["model"], views.get_title(row)
        is_overall = dataset == views.ALL or single == [dataset]
        key = (dataset, model, title, row["group"], row["target"])
        yield _Estimate(
            model=model,
            metric=definitions[title],
            k=row["k"],
            is_first=dataset in single[:1],
            texts={
                "model": {*names.get(model, [normalize_name(model)])},
                "dataset": {normalize_name(dataset), *[_OVERALL] * is_overall},
                "group": _list_labels(row["group"]),
                "target": _list_labels(row["target"]),
            },
            values={**statistics.get(key, {}), "value": row["value"]},
        )


def _list_labels(text: str) -> set[str]:
    """Return the texts that match a group or target: ``gender=F`` and ``F``."""
    attribute, _, value = text.rpartition("=")
    return {normalize_name(text), normalize_name(text if " " in attribute else value)}


def _collect_statistics(run: RunTables) -> dict[tuple[str, ...], dict[str, float]]:
    """Return the results of tests, by the key of the estimate: means, and the median p."""
    tests = run.significance
    of_models = tests["between"] == "models"
    columns: dict[str, Any] = {
        "statistic": fmean,
        "effect_size": fmean,
        "difference": fmean,
        "p": "median",
    }
    tests = tests.astype(dict.fromkeys(columns, float)).assign(
        model=np.where(of_models, tests["a"], tests["model"]),
        test=tests["test"] + " " + tests["b"].where(of_models, tests["between"]),
        title=[*map(format_title, tests["metric"], tests["k"])],
    )
    keys = ["dataset", "model", "title", "group", "target", "test"]
    statistics: dict[tuple[str, ...], dict[str, float]] = {}
    for row in to_records(tests.groupby(keys, sort=False).agg(columns).reset_index()):
        values = {f"{column} {row['test']}": row[column] for column in columns}
        statistics.setdefault(tuple(row[key] for key in keys[:-1]), {}).update(values)
    return statistics


def list_absent_systems(run: RunTables, name: str) -> list[str]:
    """Return the systems of a published table that the run lacks; none if the table has joins."""
    table = read_source(name)
    published = load_published(table.name)
    matched = _match_systems(run, table, published)
    systems = {normalize_name(system): system for system in filter(None, published["system"])}
    return [] if table.joins else [each for key, each in systems.items() if key not in matched]


def list_remarks(run: RunTables, name: str) -> list[str]:
    """Return why values of a run and a published table differ, and what is not compared.

    Raises:
        UnknownName: There is no such table.
    """
    table = read_source(name)
    published, single = load_published(table.name), list_single_datasets(run)
    remarks = [f"{table.title}. {table.citation}", *table.remarks]
    data = ", ".join(filter(None, published["dataset"].unique()))
    datasets = dict.fromkeys(str(item.get("name")) for item in run.manifest.get("datasets", []))
    if data and datasets:
        remarks.append(f"Published for {data}; this run uses {', '.join(datasets)}.")
    if absent := list_absent_systems(run, name):
        remarks.append(f"Published, but not in this run: {', '.join(absent)}.")
    if len(single) > 1 and not any("dataset" in join.match for join in table.joins):
        remarks.append(f"Only the dataset {single[0]} of the run is compared.")
    return remarks


def build_reference_table(name: str, frame: pd.DataFrame, remarks: Sequence[str]) -> wording.Table:
    """Return the rows of ``reference.csv`` of one published table as a table."""
    values = ["published", "measured", "difference"]

    def format_percent(row: Mapping[str, Any]) -> Cell:
        relative = row["relative"]
        return Cell("" if math.isnan(relative) else f"{relative:+.1%}", relative)

    def make_cell(column: str) -> Callable[[Mapping[str, Any]], Cell]:
        return lambda row: number_cell(row[column], row["places"])

    table = wording.tabulate(
        f"Comparison with {name}",
        wording.add_places(to_records(frame), values),
        {
            "model": lambda row: row["system"],
            "metric": lambda row: format_title(row["metric"], row["k"]),
            **{column: make_cell(column) for column in values},
            "relative": format_percent,
            "within": lambda row: "yes" if row["within"] else "no",
        },
        [*["It has no model and metric of this run."] * frame.empty, *remarks],
    )
    return wording.state_cutoff_once(table)
