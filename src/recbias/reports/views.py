"""What a run says, as rows: definitions of metrics, estimates, comparisons, and questions."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import pandas as pd

from recbias.core import measures
from recbias.core.grouping import parse_uncertain_label
from recbias.core.measures import DATASET, SERVED, Direction, to_loss
from recbias.core.plugins import BASELINES
from recbias.core.text import normalize_name
from recbias.registry import name_metric as spell_metric
from recbias.reports import wording
from recbias.reports.run import RunTables, to_records
from recbias.reports.wording import GROUPING, format_count, make_heading, to_line
from recbias.statistics.intervals import derive_error
from recbias.statistics.paired import EXACT
from recbias.statistics.spread import TREND

DIRECTION_LABELS: Mapping[Direction, str] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "nearer to 0 is better",
    "none": "no preferred direction",
}

ACCURACY = (
    *("nDCG", "MAP", "MRR", "Recall", "Precision", "HR", "F1", "R-Precision"),
    "mean_precision",
)
"""Names of accuracy metrics, by preference."""

POPULARITY = ("log_popularity_difference", "ARP", "popularity_lift", "Gini")
"""Names of popularity metrics, by preference."""

ALL = measures.ALL
"""The value of ``dataset``, ``seed`` or ``fold`` in rows that hold the mean over all of them."""

Row = Mapping[str, Any]

Place = tuple[str, str, str]
"""A dataset, seed and fold."""

# ---- definitions ----

_SCALE = re.compile(r"[^:]*: (\S+ for [^,;]+)")  # the end of a range and what it means
_SETTINGS = re.compile(r" \([a-z][^()]*\)(?=$|, | by )")  # the settings in a heading


@dataclass(frozen=True)
class Definition:
    """The definition of a metric of the run.

    Args:
        title: The column header: ``nDCG@10``.
        name: The plug-in's name.
        direction: Which values are better.
        summary: One sentence.
        formula: The formula in plain text.
        values: The range of the metric.
        source: The paper.
        unit: The unit of the per-unit values, or blank.
        family: The metrics that it stands with in tables, such as ``accuracy``.
        group_direction: Which values of a group of queries are better: for a gap, whose
            ``direction`` is its own, that of the metric.
        parameters: The metric's settings.
    """

    title: str
    name: str
    direction: Direction = "none"
    summary: str = ""
    formula: str = ""
    values: str = ""
    source: str = ""
    unit: str = ""
    family: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    group_direction: Direction = "none"

    @property
    def by(self) -> str:
        """By what queries are grouped, blank if they are not."""
        return str(self.parameters.get("by", ""))

    @property
    def gap(self) -> str:
        """``difference``, ``ratio`` or ``std`` of groups of queries; blank for other metrics."""
        gap = str(self.parameters.get("gap", "")) if self.by else ""
        return "" if gap == "groups" else gap

    @property
    def is_of_named(self) -> bool:
        """Whether only named pairs of groups, or each and a reference group, are compared."""
        return bool(self.parameters.keys() & {"pairs", "reference_group"})

    @property
    def min_group(self) -> int:
        """The least number of units of a group that is compared; 0 if all are."""
        return int(self.parameters.get("min_group") or 0)

    @property
    def heading(self) -> str:
        """The title for people: ``nDCG@10, gap by gender``."""
        return make_heading(self.title, "" if self.gap and "gap=" not in self.title else self.by)

    @property
    def groups_heading(self) -> str:
        """The heading of the groups of queries between which this is the gap."""
        if not self.gap:
            return self.heading
        return make_heading(re.sub(r"(, )?gap=\w+(, min_group=\d+)?", "", self.title), self.by)

    @property
    def name_in_words(self) -> str:
        """The name of the plug-in for people, as in all tables and plots."""
        return spell_metric(self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which people select the metric, the most specific first.

        The values of groups have those of the metric over all queries too; a gap has its own only.
        """
        forms = [self.title, self.heading]
        if not self.gap:
            base = wording.ungroup(self.title)
            forms += [base, make_heading(base), self.name + wording.split_cutoff(self.title)[1]]
        names = (name for form in forms for name in (form, wording.split_cutoff(form)[0]))
        return tuple(dict.fromkeys(names))

    def name_values(self, group: str) -> str:
        """Return the heading of values: without the grouping if their group stands beside it."""
        return make_heading(wording.ungroup(self.title)) if group else self.heading

    def describe_value(self, group: str = "", target: str = "") -> str:
        """Return a value of the metric in words: ``nDCG@10 of gender=F``."""
        place = " ".join(filter(None, (group, target)))
        return self.name_values(group) + f" of {place}" * bool(place)

    @property
    def scale(self) -> str:
        """What a value at an end of the range means: ``1 for identical lists``; often blank."""
        match = _SCALE.match(self.values)
        return match[1] if match else ""


def format_title(metric: str, k: float | None) -> str:
    """Return the title of a metric at a cutoff.

    >>> format_title("nDCG", 10.0), format_title("R-RIPA", float("nan"))
    ('nDCG@10', 'R-RIPA')
    """
    return metric if k is None or math.isnan(k) else f"{metric}@{k:.0f}"


def get_title(row: Row) -> str:
    """Return the title of the metric of a row."""
    return format_title(row["metric"], row["k"])


@lru_cache(maxsize=2)
def collect_definitions(run: RunTables) -> Mapping[str, Definition]:
    """Return the definition of every metric in ``metrics.csv`` by title, in the file's order.

    A metric that the manifest does not define has the direction ``none``.
    """
    entries = run.manifest.get("metrics", [])
    by_title = {format_title(entry["metric"], entry.get("k")): entry for entry in entries}
    by_metric = {entry["metric"]: entry for entry in entries}
    titles = run.metrics[["metric", "k"]].drop_duplicates()
    return {
        title: _define(title, by_title.get(title) or by_metric.get(metric) or {})
        for metric, k in titles.itertuples(index=False)
        for title in [format_title(metric, k)]
    }


def _define(title: str, entry: Mapping[str, Any]) -> Definition:
    parameters = entry.get("parameters") or {}
    texts = ("summary", "formula", "values", "source", "unit", "family")
    direction: Direction = entry.get("direction", "none")
    return Definition(
        title=title,
        name=str(entry.get("name") or re.split(r"[@(]", title)[0]),
        direction=direction,
        group_direction=entry.get("group_direction", direction),
        parameters={k: v for k, v in parameters.items() if k != "by" or v is not None},
        **{name: str(entry.get(name) or "") for name in texts},
    )


def get_definition(run: RunTables, title: str) -> Definition:
    """Return the definition of a title; of an unknown one, that with its name alone."""
    return collect_definitions(run).get(title) or Definition(title, title)


def group_definitions(run: RunTables) -> list[list[Definition]]:
    """Return the metrics of the run; those that differ in settings only are together."""
    groups: dict[tuple[str, ...], list[Definition]] = {}
    for metric in collect_definitions(run).values():
        texts = (metric.summary, metric.formula, metric.values, metric.source, metric.unit)
        groups.setdefault((metric.name, *texts), []).append(metric)
    return [*groups.values()]


def name_metric(run: RunTables, metric: Definition, group: str = "") -> str:
    """Return the name of a metric for people: ``nDCG gap by gender``, ``popularity bias (log)``.

    The cutoff is left out where all metrics of the run share it, settings where all metrics of
    the name do, and the grouping where the group stands beside the value.
    """
    heading, definitions = metric.name_values(group), collect_definitions(run).values()
    settings = [_drop_grouping(each, "k") for each in definitions if each.name == metric.name]
    if all(each == settings[0] for each in settings):
        heading = _SETTINGS.sub("", heading, count=1)
    if run.metrics["k"].nunique() < 2:
        heading, _ = wording.split_cutoff(heading)
    return to_line(heading.replace(", gap by ", " gap by "))


def _drop_grouping(metric: Definition, *others: str) -> dict[str, Any]:
    return {k: v for k, v in metric.parameters.items() if k not in {*GROUPING, *others}}


def name_unit(run: RunTables, metric: Definition) -> str:
    """Return what a metric counts: its unit, or that of the queries; blank if it is unknown."""
    requested = {str(entry.get("unit", "query")) for entry in run.manifest.get("queries", [])}
    queries = requested.pop() if len(requested) == 1 else "query"
    if metric.unit not in {"", "query"}:
        return metric.unit.replace("_", " ")
    return "" if queries == "prompt" and not metric.unit else queries


def select_first(definitions: Iterable[Definition], names: Iterable[str]) -> Definition | None:
    """Return the definition whose name comes first in ``names``, or None."""
    by_name = {normalize_name(metric.name): metric for metric in reversed([*definitions])}
    return next(filter(None, (by_name.get(normalize_name(name)) for name in names)), None)


def select_accuracy_metric(definitions: Iterable[Definition]) -> Definition | None:
    """Return nDCG, else the first accuracy metric of the run by preference, else None."""
    return select_first(definitions, ACCURACY)


def flag_best(values: Iterable[float], direction: Direction) -> list[bool]:
    """Return which values are the best: all that are tied, never NaN, none without a direction.

    >>> flag_best([0.1, 0.3, 0.3, float("nan")], "higher")
    [False, True, True, False]
    """
    losses = [to_loss(value, direction) for value in values]
    least = min((loss for loss in losses if not math.isnan(loss)), default=math.nan)
    return [loss == least for loss in losses]


# ---- datasets, models, and estimates ----


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


def list_baselines(run: RunTables) -> frozenset[str]:
    """Return the models that others are compared with; none if all models of the run are."""
    models = run.manifest.get("models", [])
    labels = {
        str(model.get("label"))
        for model in models
        if model.get("is_baseline", model.get("name") in BASELINES)
    }
    return frozenset(labels if len(labels) < len(models) else ())


def _sort_by(labels: Sequence[str], column: pd.Series) -> list[str]:
    position = {label: number for number, label in enumerate(labels)}
    return sorted(column.unique(), key=lambda name: position.get(name, len(position)))


@lru_cache(maxsize=2)
def collect_estimates(run: RunTables) -> pd.DataFrame:
    """Return ``run.metrics`` with the numbers of units in the rows that hold means.

    In the file, ``n`` and ``undefined`` of these rows count the values that are averaged. Here the
    ``n`` of a mean over seeds and folds counts the units that have a value in any of them, and its
    ``undefined`` the others. If the units are not stored, they are the smallest ``n`` that is not
    0 and the largest ``undefined``. Both are added over datasets. The groups of queries that tests
    compare have the values of ``groups.csv``: means over units, each with its mean over seeds and
    folds. The ``undefined`` of a gap is that of the groups that it compares: units without a label
    have none.
    """
    estimates = replace_groups(_count_units(run.metrics, run.units), run.groups)
    return estimates if run.groups is None else _count_compared(run, estimates)


def _count_compared(run: RunTables, estimates: pd.DataFrame) -> pd.DataFrame:
    definitions, records = collect_definitions(run), to_records(estimates)
    compared: dict[tuple[object, ...], float] = {}
    keys = []
    for row in records:
        metric = definitions[get_title(row)]
        settings = {name: each for name, each in metric.parameters.items() if name != "gap"}
        key = (*get_place(row), row["model"], row["target"], metric.name, repr(settings))
        keys.append(key if metric.gap and not row["group"] else None)
        if row["group"] and row["n"] >= metric.min_group:
            is_uncertain = parse_uncertain_label(metric.by) is not None
            before = compared.get(key, 0.0)
            compared[key] = (max if is_uncertain else operator.add)(before, row["undefined"])
    undefined = [
        compared.get(of_gap, math.nan) if of_gap else row["undefined"]
        for row, of_gap in zip(records, keys, strict=True)
    ]
    return estimates.assign(undefined=undefined)


def _count_units(metrics: pd.DataFrame, distinct: pd.DataFrame | None) -> pd.DataFrame:
    counts = ["n", "undefined"]
    is_mean = (metrics[["dataset", "seed", "fold"]] == ALL).any(axis=1)
    if not is_mean.any():
        return metrics
    single = _select_single(metrics)
    single = single.assign(n=single["n"].where(single["n"] > 0))
    keys = ["model", *measures.METRIC_KEY_COLUMNS]
    groups = single.groupby(["dataset", *keys], dropna=False, sort=False)[counts]
    units = groups.agg({"n": "min", "undefined": "max"}).reset_index()
    if distinct is not None:
        known = units[["dataset", *keys]].merge(distinct, "left", on=["dataset", *keys])
        units[counts] = known[counts].fillna(units[counts])
    totals = units.groupby(keys, dropna=False, sort=False)[counts].sum().reset_index()
    units = pd.concat([units, totals.assign(dataset=ALL)])
    found = metrics[["dataset", *keys]].merge(units, "left", on=["dataset", *keys])
    found = found[counts].fillna({"n": 0.0}).set_axis(metrics.index)
    return metrics.assign(**{name: metrics[name].where(~is_mean, found[name]) for name in counts})


@lru_cache(maxsize=2)
def list_single(run: RunTables) -> Mapping[str, Sequence[Row]]:
    """Return the rows of each dataset, seed and fold by the title of their metric.

    The groups of a gap that ``metrics.csv`` does not have are those of ``groups.csv``.
    """
    rows: dict[str, list[Row]] = {title: [] for title in collect_definitions(run)}
    for row in to_records(_select_single(run.metrics)):
        rows[get_title(row)].append(row)
    whole = {title for title, own in rows.items() if not any(row["group"] for row in own)}
    for row in to_records(run.groups) if run.groups is not None else ():
        if get_title(row) in whole and row["dataset"] != ALL:
            rows[get_title(row)].append(row)
    return rows


def _select_single(metrics: pd.DataFrame) -> pd.DataFrame:
    is_mean = (metrics[["dataset", "seed", "fold"]] == ALL).any(axis=1)
    return metrics[~is_mean & (metrics["dataset"] != measures.POOLED)]


def replace_groups(metrics: pd.DataFrame, groups: pd.DataFrame | None) -> pd.DataFrame:
    """Return ``metrics`` with the rows of ``groups`` instead of those of the same keys."""
    if groups is None:
        return metrics
    keys = [*measures.FIT_COLUMNS, *measures.METRIC_KEY_COLUMNS]
    found = metrics[keys].merge(groups, "left", on=keys, indicator=True)
    is_group = (found.pop("_merge") == "both").to_numpy()
    values = list(measures.VALUE_COLUMNS)
    replaced = metrics.copy()
    replaced.loc[is_group, values] = found.loc[is_group, values].to_numpy()
    others = groups.merge(metrics[keys], "left", on=keys, indicator=True)
    others = others[others.pop("_merge") == "left_only"]
    return pd.concat([replaced, others], ignore_index=True)


def describe_means(run: RunTables) -> list[str]:
    """Return what n and the interval of the means of a run are based on, if it has any."""
    varying = select_varying(run.metrics, ["seed", "fold"])
    each, over = " and ".join(varying), " and ".join(f"{name}s" for name in varying)
    counted = f"n counts the units of each {each} (the smallest number, if they differ)"
    if run.units is not None:
        counted = "n counts units, not values"
    notes = [f"Means over {over}: {counted}; intervals have units as clusters."]
    if ALL not in list_datasets(run):
        return notes * bool(varying)
    of_datasets = "Means over datasets: n adds up the units; the datasets are a sample."
    return [*notes * bool(varying), of_datasets]


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


@lru_cache(maxsize=2)
def list_headline(run: RunTables) -> Mapping[tuple[str, str], Sequence[Row]]:
    """Return the headline rows of the estimates by the title of their metric and the dataset."""
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in to_records(select_headline(run, collect_estimates(run))):
        rows.setdefault((get_title(row), row["dataset"]), []).append(row)
    return rows


def list_whole(run: RunTables, title: str, dataset: str) -> list[Row]:
    """Return the headline rows of a metric over all queries and items."""
    rows = list_headline(run).get((title, dataset), ())
    return [row for row in rows if not (row["group"] or row["target"])]


def find_gaps(run: RunTables, metric: Definition, dataset: str) -> dict[str, Row]:
    """Return the difference between the groups of a metric for each model that has it."""
    same = _identify_groups(metric)
    return {
        row["model"]: row
        for title, each in collect_definitions(run).items()
        if each.gap == "difference" and _identify_groups(each) == same
        for row in list_whole(run, title, dataset)
        if not math.isnan(row["value"])
    }


def group_rows(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    """Return rows by the texts of some columns, in the order of their first appearance."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[name]) for name in names), []).append(row)
    return groups


def select_varying(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the columns that hold more than one value."""
    return [column for column in columns if len(frame[column].unique()) > 1]


def get_place(row: Row) -> Place:
    """Return the dataset, seed and fold of a row."""
    return str(row["dataset"]), str(row["seed"]), str(row["fold"])


def describe_place(run: RunTables, place: Place) -> str:
    """Return the dataset, seed and fold for a sentence, where the run has several."""
    several = len(list_single_datasets(run)) > 1
    where = "over all datasets" if place[0] == ALL else f"on {to_line(place[0])}"
    columns = dict(zip(("seed", "fold"), place[1:], strict=True))
    varying = select_varying(run.metrics, ["seed", "fold"])
    part = ", ".join(f"{name} {columns[name]}" for name in varying if columns[name] != ALL)
    return f" {where}" * several + f" ({part})" * bool(part)


def rank_label(text: str) -> tuple[bool, int, str]:
    """Return a sort key: ``all`` first, then numbers by value, then text.

    >>> sorted(["10", "2", "all"], key=rank_label)
    ['all', '2', '10']
    """
    return text != ALL, int(text) if text.isascii() and text.isdigit() else 0, text


def find_worst_groups(rows: Sequence[Row], metric: Definition) -> list[Row]:
    """Return the groups with the worst mean in the metric's direction: all that are tied.

    For ``zero`` they are the farthest from 0. There is none without a direction, and none if all
    defined means are equally good. Groups of a single unit, or of fewer than the metric compares,
    are left out.
    """
    rows = [row for row in rows if not row["n"] < max(2, metric.min_group)]
    losses = [to_loss(row["value"], metric.group_direction) for row in rows]
    defined = [loss for loss in losses if not math.isnan(loss)]
    if not defined or math.isclose(max(defined), min(defined), rel_tol=1e-12, abs_tol=1e-15):
        return []
    return [row for row, loss in zip(rows, losses, strict=True) if loss == max(defined)]


def select_tradeoffs(run: RunTables) -> list[dict[str, Any]]:
    """Return the headline rows of ``tradeoffs.csv`` for one metric of accuracy.

    It is nDCG if there is one, else the first of the preferred names, else the first of the file.
    """
    table = run.tradeoffs
    if table is None or table.empty:
        return []
    table = select_headline(run, table)
    ranks = {name: rank for rank, name in enumerate(ACCURACY)}
    best = min(
        table["accuracy"].unique(),
        key=lambda title: ranks.get(title.partition("@")[0], len(ranks)),
    )
    return to_records(table[table["accuracy"] == best])


def name_reranker(row: Row) -> str:
    """Return the label of the re-ranker of a version without the setting that orders versions.

    >>> row = {"model": "EASE + FA*IR(protected=F, share=0.2)", "baseline": "EASE"}
    >>> name_reranker({**row, "setting": "share"}), name_reranker({**row, "setting": ""})
    ('FA*IR(protected=F)', 'FA*IR(protected=F, share=0.2)')
    """
    label = str(row["model"]).removeprefix(f"{row['baseline']} + ")
    name, _, settings = label.removesuffix(")").partition("(")
    if not row["setting"] or not settings:
        return label
    parts = [part for part in settings.split(", ") if not part.startswith(f"{row['setting']}=")]
    return f"{name}({', '.join(parts)})" if parts else name


# ---- comparisons ----

_GROUP_BY = (
    *("dataset", "seed", "fold", "metric", "k", "test", "between"),
    *("correction", "family", "alpha", "part"),
)
_PART = ("group", "target")
_ESTIMATE = ("dataset", "seed", "fold", "metric", "k", *_PART)

_TESTS = {
    "paired_t": "paired t-test",
    "wilcoxon": "Wilcoxon signed-rank test",
    "sign_flip": "sign-flip permutation test",
    "chi_squared": "chi-squared test",
    "fisher_exact": "Fisher's exact test",
    "paired_bootstrap": "paired bootstrap",
    "welch_t": "Welch's t-test",
    "newcombe": "Newcombe's test of two shares",
    "overlap_t": "t-test of groups that share units",
    "uncertain_t": "t-test of groups known as probabilities",
    "prediction_powered": "t-test of values corrected by human labels",
    "permutation": "permutation test",
    "rank_sum": "Wilcoxon rank-sum test",
    "random_direction": "test against random directions",
    "welch_anova": "Welch's analysis of variance",
    "jonckheere_terpstra": "Jonckheere-Terpstra test of a trend",
    "gap_change": "simultaneous test of a change of the gap",
}
_CORRECTIONS = {"bonferroni": "Bonferroni", "holm": "Holm", "bh": "Benjamini-Hochberg"}
_FAMILIES = {"metric": "over {} per metric", "report": "over all {} of the run"}


@dataclass(frozen=True, eq=False)
class Comparisons:
    """All comparisons on a metric by one test and correction, in one dataset, seed and fold.

    Args:
        metric: The metric.
        place: Dataset, seed and fold.
        test: The test's name.
        between: What was compared: ``models``, ``groups``, ...
        part: The query label and item attribute value they are restricted to, blank for all.
        rows: Rows of ``significance.csv``.
    """

    metric: Definition
    place: Place
    test: str
    between: str
    part: str
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """The title of the metric."""
        return self.metric.title

    @property
    def compares_models(self) -> bool:
        """Whether models are compared with each other."""
        return self.between.startswith("model")

    @property
    def significant(self) -> int:
        """The number of significant comparisons."""
        return sum(map(is_significant, self.rows))

    @property
    def n_tested(self) -> int:
        """The number of comparisons that have a p-value."""
        return sum(not math.isnan(row["p_adjusted"]) for row in self.rows)

    @property
    def heading(self) -> str:
        """The metric and the part of the queries and items."""
        return ", ".join(filter(None, [self.metric.heading, self.part]))

    def names(self) -> list[str]:
        """Return what is compared, in order of appearance."""
        return list(dict.fromkeys(str(row[side]) for side in ("a", "b") for row in self.rows))


def describe_methods(comparisons: Sequence[Comparisons]) -> str:
    """Return the tests, corrections and families of comparisons as text, without repetition."""
    kinds: dict[tuple[str, str, float], list[Comparisons]] = {}
    for each in comparisons:
        row = each.rows[0]
        kinds.setdefault((row["correction"], row["family"], row["alpha"]), []).append(each)
    return "; ".join(
        f"{' and '.join(map(describe_test, dict.fromkeys(each.test for each in same)))}, "
        f"{_describe_correction(*kind, same)}"
        for kind, same in kinds.items()
    )


def describe_test(name: str) -> str:
    """Return the name of a test as text, with the settings that tell it from others of the run.

    >>> describe_test("sign_flip(permutations=99)")
    'sign-flip permutation test (permutations=99)'
    """
    start, opening, settings = name.partition("(")
    return f"{_TESTS[start]} {opening}{settings}".strip() if start in _TESTS else name


def _describe_correction(
    correction: str, family: str, alpha: float, comparisons: Sequence[Comparisons]
) -> str:
    """Return the correction and the sizes of its families: ``Holm over 3 to 84 comparisons``."""
    if all(math.isnan(row.get("p", 0.0)) for each in comparisons for row in each.rows):
        return "no p-value"
    if correction in {"", "none"}:
        return f"no correction, alpha {alpha:g}"
    sizes = {each.rows[0]["family_size"] for each in comparisons}
    defined = sorted(size for size in sizes if not math.isnan(size))
    counted = format_count(defined[-1], "comparison") if defined else "n comparisons"
    if defined and defined[0] != defined[-1]:
        counted = f"{defined[0]:,.0f} to {counted}"
    over = _FAMILIES.get(family, "over {}").format(counted)
    over = "over one comparison" if sizes == {1.0} else over
    return f"{_CORRECTIONS.get(correction, correction)} {over}, alpha {alpha:g}"


def is_significant(row: Row) -> bool:
    """Return whether a row of ``significance.csv`` is significant."""
    return str(row["significant"]).casefold() in {"true", "1"}


@lru_cache(maxsize=2)
def collect_comparisons(run: RunTables) -> tuple[Comparisons, ...]:
    """Return the headline comparisons: between models first, then by order of the metrics."""
    half_widths = {
        (*_identify(row), row["model"]): (row["ci_high"] - row["ci_low"]) / 2
        for row in to_records(run.metrics)
    }
    groups = group_rows((_add_reach(row, half_widths) for row in _select_rows(run)), _GROUP_BY)
    comparisons = [
        Comparisons(
            get_definition(run, get_title(row)),
            get_place(row),
            *(row["test"], row["between"], row["part"], tuple(rows)),
        )
        for rows in groups.values()
        for row in rows[:1]
    ]
    order = {title: number for number, title in enumerate(collect_definitions(run))}
    return tuple(
        sorted(
            comparisons,
            key=lambda item: (not item.compares_models, order.get(item.title, len(order))),
        )
    )


def _select_rows(run: RunTables) -> Iterator[Row]:
    """Yield the headline rows of ``significance.csv`` with ``part``, those of models first."""
    if run.significance.empty:
        return
    of_models = run.significance["between"].str.startswith("model").to_numpy(dtype=bool)
    for row in to_records(select_headline(run, run.significance[of_models])):
        yield {**row, "part": " ".join(row[name] for name in _PART).strip()}
    within = run.significance[~of_models]
    for _, rows in within.groupby(["metric", "k"], sort=False, dropna=False):
        for row in to_records(select_headline(run, rows)):
            yield {**row, "part": ""}


def _add_reach(row: Row, half_widths: Mapping[tuple[str, ...], float]) -> Row:
    """Return a row with ``reach``: an upper bound of the corrected half width of a + b."""
    key = _identify(row)
    widths = [half_widths.get((*key, row[side]), math.nan) for side in ("a", "b")]
    tests = 1.0 if row["correction"] in {"", "none"} else max(row["family_size"], 1.0)
    level = -NormalDist().inv_cdf(row["alpha"] / 2 / tests) / NormalDist().inv_cdf(0.975)
    return {**row, "reach": level * sum(widths)}


def _identify(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in _ESTIMATE)


def find_wins(comparisons: Comparisons) -> dict[str, set[str]]:
    """Return, for each model, the models that it is significantly better than."""
    wins: dict[str, set[str]] = {name: set() for name in comparisons.names()}
    for row in filter(is_significant, comparisons.rows):
        if side := _find_better_side(row, comparisons.metric.direction):
            wins[row[side]].add(row["b" if side == "a" else "a"])
    return wins


def _find_better_side(row: Row, direction: Direction) -> str:
    """Return ``a`` or ``b``, whichever mean is better, or blank if neither is shown to be.

    Where the direction is ``zero``, two means that differ may be equally far from 0 on opposite
    sides: |a| and |b| differ only if both a - b and a + b differ from 0. The test of the row
    covers the difference; the sum counts as different from 0 if it exceeds ``reach``.

    The effect size of a rank test may contradict the means, which a few users can dominate. Then
    neither side is better.

    >>> _find_better_side({"mean_a": 0.2, "mean_b": 0.1}, "higher")
    'a'
    >>> _find_better_side({"mean_a": 0.2, "mean_b": -0.21, "reach": 0.02}, "zero")
    ''
    """
    a, b = to_loss(row["mean_a"], direction), to_loss(row["mean_b"], direction)
    if row.get("effect_size", math.nan) * (row["mean_a"] - row["mean_b"]) < 0:
        return ""
    if direction == "zero" and not abs(row["mean_a"] + row["mean_b"]) > row["reach"]:
        return ""
    return "a" if a < b else "b" if b < a else ""


def compute_effect(row: Row) -> float:
    """Return the size of an effect in standard deviations, for the order of conclusions.

    It is that of the test; else |difference| / (se √n), twice this for two groups; NaN if neither
    exists. Equal differences of all units, other than 0, are infinitely many of them.
    """
    if lacks_spread(row):
        return math.inf
    if not math.isnan(row["effect_size"]):
        return float(abs(row["effect_size"]))
    error, _ = derive_error(row)
    if not error > 0 or not row["n"] > 0:
        return math.nan
    sides = 1.0 if row["between"].startswith("model") else 2.0
    return float(sides * abs(row["difference"]) / error / math.sqrt(row["n"]))


def lacks_spread(row: Row) -> bool:
    """Return whether all units, or the units of each group, have the same difference, not 0.

    >>> row = {"between": "models", "p": 0.03, "difference": 1.0, "ci_low": float("nan")}
    >>> lacks_spread(row), lacks_spread({**row, "difference": 0.0})
    (True, False)
    """
    compares_units = str(row["between"]).startswith(("model", "prompt"))
    is_tested = not math.isnan(row["p"]) and math.isnan(row["ci_low"])
    is_constant = is_tested and (compares_units or row["test"] == "welch_t")
    return is_constant and row["difference"] != 0


def includes_zero(row: Row) -> bool:
    """Return whether a comparison is significant though its interval includes 0."""
    return is_significant(row) and row["ci_low"] <= 0.0 <= row["ci_high"]


ZERO = (
    "Significant, though the interval includes 0: the test asks how large the difference would be "
    "by chance, and the interval, which covers more, how large it is."
)
"""Why the interval of a significant comparison may include 0."""


def rank_effect(effect: float) -> float:
    """Return a key to sort effects by: undefined ones come last if the largest is first."""
    return -math.inf if math.isnan(effect) else effect


def _rank_size(row: Row) -> float:
    return rank_effect(abs(row["difference"]))


def orient(row: Row, name: str = "difference") -> tuple[float, float, float]:
    """Return the size of a difference, and its interval with the same sign.

    >>> orient({"difference": -0.2, "ci_low": -0.5, "ci_high": 0.1})
    (0.2, -0.1, 0.5)
    """
    low, high = ("ci_low", "ci_high") if name == "difference" else (f"{name}_low", f"{name}_high")
    if row[name] < 0:
        return -row[name], -row[high], -row[low]
    return row[name], row[low], row[high]


# ---- questions ----

# the rows of ``metrics.csv`` on one metric, by model, group and target
_Estimates = Mapping[tuple[str, str, str], Row]


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """The comparisons of one metric by the first of its tests, in one dataset, seed and fold.

    Args:
        name: What is compared, for people; ``heading`` also says by what it is grouped.
        where: The dataset, seed and fold for a sentence: `` on ml-1m (fold 1)``.
        unit: What the n of an estimate counts, and ``units`` that of a comparison: users, names.
        baselines: The models that others are compared with.
        references: The models that checks compare others with.
        comparisons: Those of all models, or parts of the queries and items.
        estimates: The values of the metric in the same dataset, seed and fold.
        served: The comparisons of all models over the queries that all of them have a list for.
        unserved: Of groups' accuracy, how many queries lack a list of a model: ``9 of 20 users``.
    """

    metric: Definition
    name: str
    heading: str
    where: str
    unit: str
    units: str
    baselines: frozenset[str]
    references: frozenset[str] = frozenset()
    comparisons: tuple[Comparisons, ...]
    estimates: _Estimates
    served: Comparisons | None = None
    unserved: str = ""

    @cached_property
    def all_rows(self) -> list[Row]:
        """The comparisons with the part that they are restricted to."""
        return [{**row, "part": each.part} for each in self.comparisons for row in each.rows]

    @cached_property
    def rows(self) -> list[Row]:
        """The comparisons that have a p-value, but of baselines alone; largest effect first."""
        own = (row for row in self.all_rows if {row[s] for s in self._sides} & {*self.models})
        return sorted(
            (row for row in own if not math.isnan(row["p_adjusted"])),
            key=lambda row: (-rank_effect(compute_effect(row)), -_rank_size(row)),
        )

    @cached_property
    def significant(self) -> list[Row]:
        """The significant comparisons, the largest effect first."""
        return [row for row in self.rows if is_significant(row)]

    @cached_property
    def leads(self) -> list[Row]:
        """The largest significant difference of each model, the largest of all first.

        Those of models that checks compare others with are last.
        """
        ranked = self.significant
        if self.between == "groups":
            ranked = sorted(
                ranked, key=lambda row: (-float(f"{_rank_size(row):.9g}"), row["target"])
            )
        leads = [*{row["model"]: row for row in reversed(ranked)}.values()][::-1]
        return sorted(leads, key=lambda row: row["model"] in self.references)

    @property
    def between(self) -> str:
        """What was compared: ``models``, ``groups``, ..."""
        return self.comparisons[0].between

    @property
    def compares_models(self) -> bool:
        """Whether models are compared with each other."""
        return self.comparisons[0].compares_models

    @property
    def _sides(self) -> tuple[str, ...]:
        return ("a", "b") if self.compares_models else ("model",)

    @cached_property
    def models(self) -> list[str]:
        """The models that are compared, or within which groups are compared, no baselines.

        Baselines if there is nothing else.
        """
        found = list(dict.fromkeys(str(row[s]) for row in self.all_rows for s in self._sides))
        return [name for name in found if name not in self.baselines] or found

    def get_value(self, model: str) -> float:
        """Return the value of a model, NaN if it has none."""
        return float(self.estimates.get((model, "", ""), {"value": math.nan})["value"])

    def add_interval(self, row: Row) -> Row:
        """Return a comparison that has no interval with that of the value which it is, if any."""
        value = self.estimates.get((row["model"], row["group"], row["target"]))
        is_known = not math.isnan(row["ci_low"])
        if is_known or value is None or not math.isclose(value["value"], row["difference"]):
            return row
        return {**row, "ci_low": value["ci_low"], "ci_high": value["ci_high"]}

    def find_worst(self, model: str, target: str) -> list[Row]:
        """Return the rows of the worst-off groups of a model; see ``find_worst_groups``."""
        rows = [
            row
            for (name, group, of), row in self.estimates.items()
            if group and (name, of) == (model, target)
        ]
        return find_worst_groups(rows, self.metric)


@lru_cache(maxsize=2)
def collect_questions(run: RunTables) -> tuple[Question, ...]:
    """Return the questions that the comparisons of a run answer, in the order of the metrics.

    Tables of few units, which have an exact test, are not asked about. Where models are compared
    as a whole, they are not compared again in each group. Of several gaps of one grouping only the
    difference is asked about, and a test of all groups only if no pair of them is tested.
    """
    questions = collect_every_question(run)
    overall = {item.metric.title for item in questions if item.compares_models}
    return tuple(
        item
        for item in questions
        if not (
            item.compares_models
            and item.metric.parameters.get("gap") == "groups"
            and _find_plain(run, item.metric) in overall
        )
    )


@lru_cache(maxsize=2)
def collect_every_question(run: RunTables) -> tuple[Question, ...]:
    """Return the questions, also those on models in each group that are compared as a whole."""
    definitions, comparisons = collect_definitions(run), collect_comparisons(run)
    tested = {item.title for item in comparisons if not item.compares_models}
    others = [item for title, item in definitions.items() if item.gap or title in tested]
    groups: dict[tuple[object, ...], list[Comparisons]] = {}
    for item in comparisons:
        if item.test != EXACT and not _is_repeated(item, others):
            is_trend = item.test == TREND  # asked about beside the test of all groups
            groups.setdefault((item.title, item.place, item.between, is_trend), []).append(item)
    return tuple(_ask(run, items) for items in groups.values())


def _ask(run: RunTables, comparisons: Sequence[Comparisons]) -> Question:
    first, metric = comparisons[0], comparisons[0].metric
    overall = [item for item in comparisons if item.test == first.test and not item.part]
    served = [item for item in comparisons if item.part == SERVED and item.test == first.test]
    estimates = _index_estimates(run).get((first.place, first.title), {})
    is_of_groups = metric.by and (first.between == "groups" or not metric.gap)
    unit = name_unit(run, metric)
    sets = [metric.parameters.get(name) for name in ("groups", "targets")]
    of = [str(item["of"]).removesuffix("s") for item in sets if isinstance(item, Mapping)]
    return Question(
        metric=metric,
        name=name_metric(run, metric, "a group" if is_of_groups else ""),
        heading=name_metric(run, metric),
        where=describe_place(run, first.place),
        unit=unit,
        units=unit if not of else of[0] if first.between == "groups" else of[-1],
        baselines=list_baselines(run),
        references=frozenset(row["baseline"] for row in run.manifest.get("checks", [])),
        comparisons=tuple(
            overall or [item for item in comparisons if not item.part.startswith(SERVED)]
        ),
        estimates={**_list_sides(first), **estimates} if metric.gap else estimates,
        served=served[0] if served and overall else None,
        unserved=_count_unserved(run, first, unit) if first.between == "groups" else "",
    )


def _count_unserved(run: RunTables, comparisons: Comparisons, unit: str) -> str:
    """Return how many queries lack a list of some model; blank if none does.

    The metric without groups says so. Of several seeds or folds there is no number.
    """
    metric = comparisons.metric
    plain = _find_plain(run, metric) if metric.name in ACCURACY else ""
    rows = _index_estimates(run).get((comparisons.place, plain), {})
    of = {group: row["n"] for (_, group, target), row in rows.items() if not target}
    if SERVED not in of:
        return ""
    if ALL in comparisons.place[1:]:
        return f"some {name_several(unit)}"
    return f"{of[''] - of[SERVED]:,.0f} of {format_count(of[''], unit or 'query')}"


def name_several(unit: str) -> str:
    """Return the plural of what is counted, queries if that is unknown."""
    return format_count(2, unit or "query").partition(" ")[2]


def _list_sides(comparisons: Comparisons) -> _Estimates:
    """Return the means that the tests of a gap compare as rows without n and intervals."""
    if comparisons.between != "groups" or comparisons.test in {"welch_anova", TREND}:
        return {}
    unknown = dict.fromkeys(("n", "undefined", "ci_low", "ci_high"), math.nan)
    return {
        (row["model"], row[side], row["target"]): {
            **row,
            **unknown,
            "group": row[side],
            "value": row[f"mean_{side}"],
        }
        for row in comparisons.rows
        for side in "ab"
    }


def _find_plain(run: RunTables, metric: Definition) -> str:
    """Return the title of a metric over all queries, without its groups; blank if none."""
    plain, definitions = (metric.name, _drop_grouping(metric)), collect_definitions(run)
    return next((t for t, d in definitions.items() if (d.name, d.parameters) == plain), "")


def _is_repeated(comparisons: Comparisons, tested: Sequence[Definition]) -> bool:
    """Return whether another tested metric answers the same question about groups."""
    metric = comparisons.metric
    if not metric.gap:
        return False
    own = _identify_groups(metric)
    gaps = {other.gap for other in tested if _identify_groups(other) == own}
    if metric.gap != "difference":
        return "difference" in gaps
    return comparisons.test == "welch_anova" and "" in gaps


def _identify_groups(metric: Definition) -> tuple[object, ...]:
    """Return what metrics of the same groups share, whichever pairs of them are tested."""
    return metric.name, metric.by, metric.min_group, _drop_grouping(metric)


@lru_cache(maxsize=2)
def _index_estimates(run: RunTables) -> Mapping[tuple[Place, str], _Estimates]:
    """Return the rows of ``metrics.csv`` by place and metric."""
    estimates: dict[tuple[Place, str], dict[tuple[str, str, str], Row]] = {}
    for row in to_records(collect_estimates(run)):
        if row["model"] != DATASET:
            part = (row["model"], row["group"], row["target"])
            estimates.setdefault((get_place(row), get_title(row)), {})[part] = row
    return estimates
