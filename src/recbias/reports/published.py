"""The published tables that are packaged as data, and the comparison of a run with them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from statistics import median
from typing import Any

import pandas as pd

from recbias.core.errors import MixedRuns, UnknownName
from recbias.core.text import normalize_name, suggest
from recbias.reports import views, wording
from recbias.reports.run import RunTables, read_yaml, to_records
from recbias.reports.views import format_title, list_single_datasets
from recbias.reports.wording import Cell, number_cell

_ANY = "*"  # matches any text

_OVERALL = "overall"  # as the dataset, the mean over the datasets of a run, or its only one


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

    published: tuple[str, ...]
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
        texts = [
            text
            for name, value in self.match.items()
            for text in _list_texts(value)[:1]
            if name != "model" and "{" in text
        ]
        details = ", ".join(text.format(**row) for text in texts)
        return f"{row['metric']} ({details})" if details else str(row["metric"])

    def build_criteria(self, row: Mapping[str, Any]) -> dict[str, set[str]]:
        """Return the properties of our estimate, with the texts that each may equal."""
        columns = {
            name: _list_texts(self.values.get(str(value), str(value)))
            for name, value in row.items()
        }
        rows = [
            dict(zip(columns, texts, strict=True))
            for texts in itertools.product(*columns.values())
        ]
        return {
            name: {
                _ANY if text == _ANY else normalize_name(text.format(**texts))
                for text in _list_texts(value)
                for texts in rows
            }
            for name, value in self.match.items()
        }


@dataclass(frozen=True)
class _Estimate:
    """An estimate of a run."""

    dataset: str
    is_first: bool
    is_overall: bool
    model: str
    names: frozenset[str]
    metric: views.Definition
    k: float
    group: str
    target: str
    values: Mapping[str, float]

    def matches(self, criteria: Mapping[str, set[str]], cutoff: float) -> bool:
        """Return whether it meets the criteria; without one on group or target, it has none."""
        if "dataset" not in criteria and not self.is_first:
            return False
        same_k = math.isnan(cutoff) or math.isnan(self.k) or cutoff == self.k
        parts = {"group": self.group, "target": self.target}
        overall = all(name in criteria or not text for name, text in parts.items())
        return same_k and overall and all(self._has(*item) for item in criteria.items())

    def _has(self, name: str, texts: set[str]) -> bool:
        if texts == {_ANY}:
            return True
        if name == "model":
            return bool(texts & self.names)
        if name == "dataset":
            names = {normalize_name(self.dataset), *({_OVERALL} if self.is_overall else ())}
            return bool(texts & names)
        if name in {"group", "target"}:
            text = vars(self)[name]
            attribute, _, value = text.rpartition("=")
            names = {text, value} if " " not in attribute else {text}
            return bool(texts & set(map(normalize_name, names)))
        settings = [str(self.metric.parameters.get(setting)) for setting in name.split()]
        return bool(texts & {normalize_name(settings[0]), normalize_name(" ".join(settings))})


def _list_texts(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


def _match_rows(
    run: RunTables, rows: Sequence[Mapping[str, Any]], joins: Sequence[Join]
) -> Iterator[tuple[str, Mapping[str, Any], float]]:
    """Yield the model, the published row and our value of every match."""
    estimates = list(collect_estimates(run))
    published = {normalize_name(str(row.get("model_training", ""))) for row in rows}
    for row in rows:
        compared: dict[tuple[str, str], Join] = {}
        for join in joins:
            if not join.applies_to(row) or math.isnan(row["value"]):
                continue
            criteria = join.build_criteria(row)
            for estimate in (_name_other(other, join.otherwise, published) for other in estimates):
                value = estimate.values.get(join.figure, math.nan)
                if (
                    normalize_name(estimate.metric.name) == normalize_name(join.metric)
                    and estimate.matches(criteria, row["cutoff"])
                    and not math.isnan(value)
                ):
                    named = {**row, "metric": join.format_name(row)}
                    if compared.setdefault((estimate.model, named["metric"]), join) is not join:
                        continue
                    yield estimate.model, named, join.scale * value + join.offset


def _name_other(estimate: _Estimate, otherwise: str, published: set[str]) -> _Estimate:
    """Return an estimate with the name of a published model if its own label is none of them."""
    if not otherwise or normalize_name(estimate.model) in published:
        return estimate
    return replace(estimate, names=estimate.names | {normalize_name(otherwise)})


def collect_estimates(run: RunTables) -> Iterator[_Estimate]:
    """Yield every headline estimate of the run, of each dataset and of their mean."""
    definitions, names = views.collect_definitions(run), _collect_names(run)
    single = list_single_datasets(run)
    first = single[:1]
    statistics = _collect_statistics(run)
    for row in to_records(views.select_headline(run, run.metrics)):
        values = {**statistics.get(_get_key(row), {}), "value": row["value"]}
        yield _Estimate(
            dataset=row["dataset"],
            is_first=row["dataset"] in first,
            is_overall=row["dataset"] == views.ALL or single == [row["dataset"]],
            model=row["model"],
            names=names.get(row["model"], frozenset({normalize_name(row["model"])})),
            metric=definitions[format_title(row["metric"], row["k"])],
            k=row["k"],
            group=row["group"],
            target=row["target"],
            values=values,
        )


def _get_key(row: Mapping[str, Any]) -> tuple[str, ...]:
    title = format_title(row["metric"], row["k"])
    return row["dataset"], row["model"], title, row["group"], row["target"]


def _collect_names(run: RunTables) -> dict[str, frozenset[str]]:
    names = {}
    for model in run.manifest.get("models", []):
        label, name = str(model.get("label")), str(model.get("name"))
        names[label] = frozenset(map(normalize_name, (label, name, name.rpartition("/")[2])))
    return names


def _collect_statistics(run: RunTables) -> dict[tuple[str, ...], dict[str, float]]:
    """Return the results of tests, by the key of the estimate: means, and the median p."""
    tests: dict[tuple[tuple[str, ...], str], list[Mapping[str, Any]]] = {}
    for row in to_records(run.significance):
        between_models = row["between"] == "models"
        test = f"{row['test']} {row['b'] if between_models else row['between']}"
        key = _get_key({**row, "model": row["a"]} if between_models else row)
        tests.setdefault((key, test), []).append(row)
    statistics: dict[tuple[str, ...], dict[str, float]] = {}
    for (key, test), rows in tests.items():
        values = statistics.setdefault(key, {})
        for column in ("statistic", "effect_size", "difference"):
            values[f"{column} {test}"] = math.fsum(row[column] for row in rows) / len(rows)
        defined = [row["p"] for row in rows if not math.isnan(row["p"])]
        values[f"p {test}"] = median(defined) if defined else math.nan
    return statistics


_NUMBER = re.compile(r"^table(?:([A-Z])_)?(\d+)(?:_(\d+))?_")


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
    metrics: Mapping[str, str]
    systems: Mapping[str, str]
    detector: str
    remarks: tuple[str, ...]
    comparable: bool
    joins: tuple[Join, ...] = ()
    specs: tuple[str, ...] = ()
    reason: str = ""


def list_published() -> list[str]:
    """Return the names of the published tables, grouped by paper.

    >>> [name for name in list_published() if name.startswith("wok/")]
    ['wok/1', 'wok/2', 'wok/3', 'wok/text']
    """
    return list(_list_files())


def load_published(name: str) -> pd.DataFrame:
    """Load a published table; numeric columns are float64, all others are text.

    Args:
        name: ``children/a3``; also ``children/A.3``, ``children/table-a-3`` or the file's name.

    Raises:
        UnknownName: There is no such table.
    """
    with _list_files()[resolve_name(name)].open("rb") as stream:
        frame = pd.read_csv(stream, dtype="str", keep_default_na=False)
    has_values = {"system", "metric", "cutoff"} <= set(frame.columns)
    for column in {"cutoff", "value", "std", "ci95_half_width"} & set(frame.columns):
        if column != "value" or has_values:
            frame[column] = pd.to_numeric(frame[column].replace("", "nan"), errors="coerce")
    return frame


def resolve_name(name: str) -> str:
    """Return the name of a published table as ``list_published`` spells it.

    >>> resolve_name("children/tableA_3_performance_ml_all_no_side")
    'children/a3'
    >>> resolve_name("Children/table-5-1")
    'children/5.1'

    Raises:
        UnknownName: There is no such table.
    """
    names: dict[str, str] = {}
    for known, file in _list_files().items():
        paper, _, number = known.partition("/")
        for spelling in (number, file.name.removesuffix(".csv")):
            names[f"{paper}/{_normalize_number(spelling)}"] = known
    paper, _, number = name.partition("/")
    key = f"{normalize_name(paper)}/{_normalize_number(number)}"
    if key not in names:
        message = f"no published table is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, list_published()))
    return names[key]


def read_source(name: str) -> PublishedTable:
    """Return the description of a published table.

    Raises:
        UnknownName: There is no such table.
    """
    name = resolve_name(name)
    paper, _, number = name.partition("/")
    source = _read_sources()["papers"][paper]
    table = source["tables"][number]
    return PublishedTable(
        name=name,
        title=table["title"],
        citation=source["citation"],
        metrics={**source.get("metrics", {}), **table.get("metrics", {})},
        systems=source.get("systems", {}),
        detector=table.get("detector", ""),
        remarks=(*source.get("remarks", []), *table.get("remarks", [])),
        comparable=table.get("comparable", source.get("comparable", True)),
        joins=tuple(
            Join(**{**join, "published": tuple(join["published"])})
            for join in table.get("joins", [])
        ),
        specs=tuple(table.get("specs", [])),
        reason=table.get("reason", ""),
    )


def _normalize_number(number: str) -> str:
    """Return a table's number without ``table``, case and punctuation: ``a3``, ``51``."""
    return re.sub(r"[^a-z0-9]", "", number.casefold()).removeprefix("table")


def _build_name(paper: str, file: str) -> str:
    """Return ``children/a3`` for the file ``tableA_3_....csv``."""
    match = _NUMBER.match(file)
    if not match:
        return f"{paper}/{file.partition('_')[0]}"
    letter, number, suffix = match.groups()
    return f"{paper}/{(letter or '').lower()}{number}{f'.{suffix}' if suffix else ''}"


def _rank_name(name: str) -> tuple[str, bool, bool, list[int]]:
    paper, _, number = name.partition("/")
    numbers = [int(digits) for digits in re.findall(r"\d+", number)]
    return paper, not numbers, number[:1].isalpha(), numbers


@cache
def _list_files() -> dict[str, Traversable]:
    folder = files(__package__).joinpath("published_data")
    tables = {
        _build_name(paper.name, file.name): file
        for paper in folder.iterdir()
        if paper.is_dir()
        for file in paper.iterdir()
        if file.name.endswith(".csv")
    }
    return {name: tables[name] for name in sorted(tables, key=_rank_name)}


@cache
def _read_sources() -> dict[str, Any]:
    return read_yaml(
        files(__package__).joinpath("published_data", "sources.yaml").read_text("utf-8")
    )


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
        matches = _match_rows(run, published, table.joins)
        rows = [_build_row(table.name, *match, tolerance) for match in matches]
        return pd.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    labels, titles = _match_systems(run, table), _match_metrics(run, table)
    dataset = next(iter(list_single_datasets(run)), "")
    rows = []
    for row in published:
        title = titles.get((row["metric"], row["cutoff"]), "")
        values = {
            each["model"]: each["value"]
            for each in views.list_headline(run).get((title, dataset), ())
            if not (each["group"] or each["target"])
        }
        rows += [
            _build_row(table.name, label, row, values[label], tolerance)
            for label in labels.get(normalize_name(row["system"]), [])
            if label in values and not math.isnan(row["value"])
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
    definitions = views.collect_definitions(run).values()
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


def _split_label(definition: views.Definition) -> tuple[str, str]:
    """Return the detector and the value of a metric's label."""
    label = str(definition.parameters.get("label", ""))
    return label.partition(".")[0], label.rpartition(".")[2]


def build_reference_table(name: str, frame: pd.DataFrame, remarks: Sequence[str]) -> wording.Table:
    """Return the rows of ``reference.csv`` of one published table as a table."""
    rows = to_records(frame)
    by_metric: dict[str, list[float]] = {}
    for row in rows:
        values = by_metric.setdefault(row["metric"], [])
        values += (row[name] for name in ("published", "measured", "difference"))
    places = {metric: wording.count_decimals(values) for metric, values in by_metric.items()}
    table = wording.tabulate(
        f"Comparison with {name}",
        rows,
        {
            "model": lambda row: row["system"],
            "metric": lambda row: format_title(row["metric"], row["k"]),
            "published": lambda row: number_cell(row["published"], places[row["metric"]]),
            "measured": lambda row: number_cell(row["measured"], places[row["metric"]]),
            "difference": lambda row: number_cell(row["difference"], places[row["metric"]]),
            "relative": lambda row: Cell(
                "" if math.isnan(row["relative"]) else f"{row['relative']:+.1%}", row["relative"]
            ),
            "within": lambda row: "yes" if row["within"] else "no",
        },
        remarks if rows else ["It has no model and metric of this run.", *remarks],
    )
    return wording.state_cutoff_once(table)
