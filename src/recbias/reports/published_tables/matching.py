"""Matching of published rows that need more than a model and a metric with a run's estimates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recbias.core.suggestions import normalize_name
from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.headline import ALL, list_single_datasets, select_headline
from recbias.reports.views.run_tables import RunTables, to_records

ANY = "*"
"""Matches any text."""

OVERALL = "overall"
"""As the dataset, the mean over the datasets of a run, or its only one."""


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
                ANY if text == ANY else normalize_name(text.format(**texts))
                for text in _list_texts(value)
                for texts in rows
            }
            for name, value in self.match.items()
        }


@dataclass(frozen=True)
class Estimate:
    """An estimate of a run.

    Args:
        dataset: The label of its dataset; ``all`` for the mean over datasets.
        is_first: Whether that is the run's first dataset.
        is_overall: Whether that is the mean over datasets, or the only dataset.
        model: The label of its model.
        names: Every name of that model.
        metric: The definition of its metric.
        k: The cutoff, NaN if there is none.
        group: The query label that it is restricted to.
        target: The item attribute value that it is restricted to.
        values: Its numbers by ``value``, and by column and test of ``significance.csv``.
    """

    dataset: str
    is_first: bool
    is_overall: bool
    model: str
    names: frozenset[str]
    metric: Definition
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
        if texts == {ANY}:
            return True
        if name == "model":
            return bool(texts & self.names)
        if name == "dataset":
            names = {normalize_name(self.dataset), *({OVERALL} if self.is_overall else ())}
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


def match_rows(
    run: RunTables, rows: Sequence[Mapping[str, Any]], joins: Sequence[Join]
) -> Iterator[tuple[str, Mapping[str, Any], float]]:
    """Yield the model, the published row and our value of every match.

    Where several quantities are equal by definition, such as the statistic of a test and the
    estimate t, a model is compared by the first join that matches.
    """
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


def _name_other(estimate: Estimate, otherwise: str, published: set[str]) -> Estimate:
    """Return an estimate with the name of a published model if its own label is none of them."""
    if not otherwise or normalize_name(estimate.model) in published:
        return estimate
    return replace(estimate, names=estimate.names | {normalize_name(otherwise)})


def collect_estimates(run: RunTables) -> Iterator[Estimate]:
    """Yield every headline estimate of the run, of each dataset and of their mean."""
    definitions, names = collect_definitions(run), _collect_names(run)
    single = list_single_datasets(run)
    first = single[:1]
    statistics = _collect_statistics(run)
    for row in to_records(select_headline(run, run.metrics)):
        values = {**statistics.get(_get_key(row), {}), "value": row["value"]}
        yield Estimate(
            dataset=row["dataset"],
            is_first=row["dataset"] in first,
            is_overall=row["dataset"] == ALL or single == [row["dataset"]],
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
    """Return the results of tests, by the key of the estimate.

    Those between two models belong to the first, and their name ends with the second; that of the
    others ends with what they are between, as a metric may have two tests of one kind. A test of
    each seed and fold has the means over them; its p-value is undefined then.
    """
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
        values[f"p {test}"] = rows[0]["p"] if len(rows) == 1 else math.nan
    return statistics
