"""How the published tables whose rows are more than a model and a metric meet a run's figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recbias.core.suggestions import normalize_name
from recbias.reports.views.definitions import Definition, definitions, title_of
from recbias.reports.views.headline import ALL, datasets, headline
from recbias.reports.views.run_tables import RunTables, rows_of


@dataclass(frozen=True)
class Join:
    """Which of our figures a published quantity is.

    Args:
        published: The published metrics that it is about.
        metric: The name of our metric.
        figure: ``value``; or a column of ``significance.csv`` and a test: ``statistic paired_t``.
        only: Columns of the published table and the value that they must have.
        match: Parts of our figure and the published columns that they must equal, in braces:
            ``{model: "{system} {method}"}``. The parts are ``model``, ``dataset``, ``group``,
            ``target`` and the metric's settings. Without ``dataset`` the run's first is meant.
        values: Published values and ours, where they differ.
        shown: What the pair is called, with published columns in braces; by default the published
            metric, and behind it what ``match`` tells its rows apart by.
        scale: What our figure is multiplied by, for figures printed in percent.
    """

    published: tuple[str, ...]
    metric: str
    figure: str = "value"
    only: Mapping[str, str] = field(default_factory=dict)
    match: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""
    scale: float = 1.0

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Return whether a published row is of this quantity."""
        here = row["metric"] in self.published
        return here and all(row[name] == value for name, value in self.only.items())

    def named(self, row: Mapping[str, Any]) -> str:
        """Return the published metric with what tells its rows apart: ``R-RIPA (CD, Sports)``."""
        if self.shown:
            return self.shown.format(**row)
        texts = [text for part, text in self.match.items() if part != "model"]
        told = [text.format(**row) for text in texts if "{" in text]
        return f"{row['metric']} ({', '.join(told)})" if told else str(row["metric"])

    def wanted(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return what the parts of our figure must be."""
        told = {name: self.values.get(str(each), str(each)) for name, each in row.items()}
        return {part: normalize_name(text.format(**told)) for part, text in self.match.items()}


@dataclass(frozen=True)
class Measured:
    """One figure of a run.

    Args:
        dataset: The label of its dataset; ``all`` for the mean over datasets.
        first: Whether that is the run's first dataset.
        model: The label of its model.
        names: Every name of that model.
        known: The definition of its metric.
        k: The cutoff, NaN where there is none.
        group: The query label it is of.
        target: The item attribute value it is of.
        values: What it says, by ``value`` and by column and test of ``significance.csv``.
    """

    dataset: str
    first: bool
    model: str
    names: frozenset[str]
    known: Definition
    k: float
    group: str
    target: str
    values: Mapping[str, float]

    def meets(self, wanted: Mapping[str, str], cutoff: float) -> bool:
        """Return whether it is the figure that is looked for."""
        if "dataset" not in wanted and not self.first:
            return False
        same_k = math.isnan(cutoff) or math.isnan(self.k) or cutoff == self.k
        whole = {"group": self.group, "target": self.target}
        plainly = all(part in wanted or not text for part, text in whole.items())
        return same_k and plainly and all(self._is(*each) for each in wanted.items())

    def _is(self, part: str, text: str) -> bool:
        if part == "model":
            return text in self.names
        if part == "dataset":
            return text == normalize_name(self.dataset)
        if part in {"group", "target"}:
            return text == normalize_name(vars(self)[part].rpartition("=")[2])
        return text == normalize_name(str(self.known.parameters.get(part)))


def joined(
    run: RunTables, rows: Sequence[Mapping[str, Any]], joins: Sequence[Join]
) -> Iterator[tuple[str, Mapping[str, Any], float]]:
    """Yield the model, the published row and our figure of every pair that meets.

    Args:
        run: The run.
        rows: The published rows.
        joins: What they are of.
    """
    figures = list(measured(run))
    for row in rows:
        for join in joins:
            if not join.takes(row) or math.isnan(row["value"]):
                continue
            wanted = join.wanted(row)
            for each in figures:
                value = each.values.get(join.figure, math.nan)
                same = normalize_name(each.known.name) == normalize_name(join.metric)
                if same and each.meets(wanted, row["cutoff"]) and not math.isnan(value):
                    yield each.model, {**row, "metric": join.named(row)}, join.scale * value


def measured(run: RunTables) -> Iterator[Measured]:
    """Yield every figure of the run's headline, of each dataset and of their mean."""
    known, names = definitions(run), _names(run)
    single = [each for each in datasets(run) if each != ALL][:1]
    tests = _tests(run)
    for row in rows_of(headline(run, run.metrics)):
        title = title_of(row["metric"], row["k"])
        place = (row["dataset"], row["model"], title)
        own = {**tests.get((*place, row["group"], row["target"]), {}), "value": row["value"]}
        yield Measured(
            dataset=row["dataset"],
            first=row["dataset"] in single,
            model=row["model"],
            names=names.get(row["model"], frozenset({normalize_name(row["model"])})),
            known=known[title],
            k=row["k"],
            group=row["group"],
            target=row["target"],
            values=own,
        )


def _names(run: RunTables) -> dict[str, frozenset[str]]:
    found = {}
    for each in run.manifest.get("models", []):
        label, name = str(each.get("label")), str(each.get("name"))
        found[label] = frozenset(map(normalize_name, (label, name, name.rpartition("/")[2])))
    return found


def _tests(run: RunTables) -> dict[tuple[str, ...], dict[str, float]]:
    """Return what tests inside models say, by dataset, model, metric, group and target."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    if run.significance.empty:
        return found
    frame = run.significance[run.significance["between"] != "models"]
    for row in rows_of(frame):
        title = title_of(row["metric"], row["k"])
        place = (row["dataset"], row["model"], title, row["group"], row["target"])
        for column in ("statistic", "effect_size", "difference"):
            found.setdefault(place, {}).setdefault(f"{column} {row['test']}", row[column])
    return found
