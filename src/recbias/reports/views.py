"""What reports are made of: definitions of metrics, headline rows, comparisons."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import add
from statistics import NormalDist
from typing import Any

import pandas as pd

from recbias.core import measures
from recbias.core.grouping import parse_uncertain_label
from recbias.core.measures import Direction, to_loss
from recbias.core.plugins import BASELINES
from recbias.core.text import normalize_name
from recbias.registry import name_metric as spell_metric
from recbias.reports import wording
from recbias.reports.run import RunTables, to_records
from recbias.reports.wording import Cell, Table, format_count, make_heading

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


Row = Mapping[str, Any]

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
    def heading(self) -> str:
        """The title for people: ``nDCG@10, gap by gender``."""
        has_own_label = self.gap and "gap=" not in self.title
        return make_heading(
            self.title, "" if has_own_label else str(self.parameters.get("by", ""))
        )

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

    def describe_value(self, group: str = "", target: str = "") -> str:
        """Return a value of the metric in words: ``nDCG@10 of gender=F``."""
        place = " ".join(filter(None, (group, target)))
        heading = self.name_values(group)
        return f"{heading} of {place}" if place else heading

    def name_values(self, group: str) -> str:
        """Return the heading of values: without the grouping if their group stands beside it."""
        return make_heading(wording.ungroup(self.title)) if group else self.heading

    @property
    def scale(self) -> str:
        """What a value at an end of the range means: ``1 for identical lists``; often blank."""
        match = _SCALE.match(self.values)
        return match[1] if match else ""

    @property
    def least_marked(self) -> int:
        """The least number of units of a group that is marked as the worst off."""
        return max(2, int(self.parameters.get("min_group") or 0))

    @property
    def groups_heading(self) -> str:
        """The heading of the groups of queries between which this is the gap."""
        if not self.gap:
            return self.heading
        title = re.sub(r"(, )?gap=\w+(, min_group=\d+)?", "", self.title)
        return make_heading(title, str(self.parameters.get("by", "")))

    @property
    def gap(self) -> str:
        """``difference``, ``ratio`` or ``std`` of groups of queries; blank for other metrics."""
        gap = str(self.parameters.get("gap", "")) if "by" in self.parameters else ""
        return "" if gap == "groups" else gap


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
    entries = [entry for entry in run.manifest.get("metrics", []) if "metric" in entry]
    by_title = {format_title(entry["metric"], entry.get("k")): entry for entry in entries}
    by_metric = {entry["metric"]: entry for entry in entries}
    definitions = {}
    for metric, k in run.metrics[["metric", "k"]].drop_duplicates().to_numpy().tolist():
        title = format_title(metric, k)
        definitions[title] = _define(title, by_title.get(title) or by_metric.get(metric) or {})
    return definitions


def group_definitions(run: RunTables) -> list[list[Definition]]:
    """Return the metrics of the run; those that differ in settings only are together."""
    groups: dict[tuple[str, ...], list[Definition]] = {}
    for metric in collect_definitions(run).values():
        texts = (metric.summary, metric.formula, metric.values, metric.source, metric.unit)
        groups.setdefault((metric.name, *texts), []).append(metric)
    return [*groups.values()]


def _define(title: str, entry: Mapping[str, Any]) -> Definition:
    direction: Direction = entry.get("direction", "none")
    texts = ("summary", "formula", "values", "source", "unit", "family")
    return Definition(
        title=title,
        name=str(entry.get("name") or title.partition("@")[0].partition("(")[0]),
        direction=direction if direction in DIRECTION_LABELS else "none",
        group_direction=entry.get("group_direction", direction),
        parameters=_drop_missing_grouping(entry.get("parameters") or {}),
        **{name: str(entry.get(name) or "") for name in texts},
    )


def _drop_missing_grouping(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a metric without ``by`` where it is null: there are no groups."""
    return {key: value for key, value in parameters.items() if key != "by" or value is not None}


def name_metric(run: RunTables, metric: Definition, group: str = "") -> str:
    """Return the name of a metric for people: ``nDCG gap by gender``, ``popularity bias (log)``.

    The cutoff is left out where all metrics of the run share it, settings where all metrics of
    the name do, and the grouping where the group stands beside the value.
    """
    heading, definitions = metric.name_values(group), collect_definitions(run).values()
    settings = [_list_settings(other) for other in definitions if other.name == metric.name]
    if all(each == settings[0] for each in settings):
        heading = _SETTINGS.sub("", heading, count=1)
    if len({row for row in run.metrics["k"].unique() if not math.isnan(row)}) < 2:
        heading, _ = wording.split_cutoff(heading)
    return wording.to_line(heading.replace(", gap by ", " gap by "))


def _list_settings(metric: Definition) -> dict[str, Any]:
    grouping = {"k", "by", "gap", "min_group", "reference_group", "pairs"}
    return {name: value for name, value in metric.parameters.items() if name not in grouping}


def select_first(definitions: Iterable[Definition], names: Iterable[str]) -> Definition | None:
    """Return the definition whose name comes first in ``names``, or None."""
    by_name = {normalize_name(metric.name): metric for metric in reversed([*definitions])}
    matches = (by_name.get(normalize_name(name)) for name in names)
    return next(filter(None, matches), None)


def select_accuracy_metric(definitions: Iterable[Definition]) -> Definition | None:
    """Return nDCG, else the first accuracy metric of the run by preference, else None."""
    return select_first(definitions, ACCURACY)


def flag_best(values: Iterable[float], direction: Direction) -> list[bool]:
    """Return which values are the best: all that are tied, never NaN, none without a direction.

    >>> flag_best([0.1, 0.3, 0.3, float("nan")], "higher")
    [False, True, True, False]
    """
    scores = [to_loss(value, direction) for value in values]
    least = min((score for score in scores if not math.isnan(score)), default=math.nan)
    return [score == least for score in scores]


ALL = measures.ALL
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
    single = metrics[~is_mean & (metrics["dataset"] != measures.POOLED)]
    single = single.assign(n=single["n"].where(single["n"] > 0))
    keys = ["model", *measures.METRIC_KEY_COLUMNS]
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
    keys = [*measures.FIT_COLUMNS, *measures.METRIC_KEY_COLUMNS]
    found = metrics[keys].merge(groups, "left", on=keys, indicator=True)
    is_group = (found.pop("_merge") == "both").to_numpy()
    values = list(measures.VALUE_COLUMNS)
    replaced = metrics.copy()
    replaced.loc[is_group, values] = found.loc[is_group, values].to_numpy()
    others = groups.merge(metrics[keys], "left", on=keys, indicator=True)
    others = others[others.pop("_merge") == "left_only"]
    return pd.concat([replaced, others], ignore_index=True)


def _count_compared(run: RunTables, estimates: pd.DataFrame) -> pd.DataFrame:
    """Return the estimates; ``undefined`` of a gap counts the units of the compared groups."""
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
    each, over = " and ".join(varying), " and ".join(f"{name}s" for name in varying)
    counted = f"n counts the units of each {each} (the smallest number, if they differ)"
    if run.groups is not None:
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


def select_tradeoffs(run: RunTables) -> list[dict[str, Any]]:
    """Return the headline rows of ``tradeoffs.csv`` for one metric of accuracy.

    It is nDCG if there is one, else the first of the preferred names, else the first of the file.
    """
    table = run.tradeoffs
    if table is None or table.empty:
        return []
    table = select_headline(run, table)
    titles = list(dict.fromkeys(table["accuracy"]))
    ranks = {name: rank for rank, name in enumerate(ACCURACY)}
    best = min(titles, key=lambda title: ranks.get(title.partition("@")[0], len(ranks)))
    return to_records(table[table["accuracy"] == best])


def name_reranker(row: Mapping[str, Any]) -> str:
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


def build_tradeoff_table(run: RunTables) -> Table | None:
    """Return one row for each re-ranked model and metric of bias; None without re-ranking."""
    rows = select_tradeoffs(run)
    if not rows:
        return None
    varying = select_varying(pd.DataFrame(rows), ("dataset", "target"))
    places = wording.count_decimals([row["accuracy_lost"] for row in rows])
    return wording.tabulate(
        "Accuracy lost for bias removed by re-ranking",
        rows,
        {
            **wording.pick("model"),
            "beside": lambda row: row["baseline"],
            **wording.pick(*varying),
            "bias": lambda row: make_heading(row["bias"]),
            "accuracy lost": lambda row: _build_cell(row, "accuracy_lost", places),
            "bias removed": lambda row: _build_cell(row, "bias_removed", None),
            "price": lambda row: _build_cell(row, "price", None),
        },
        _explain(rows),
    )


def _build_cell(row: Mapping[str, Any], name: str, places: int | None) -> Cell:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    digits = wording.count_decimals([value]) if places is None else places
    interval = wording.format_interval(low, high, digits)
    if name == "price" and is_unbounded(row):
        interval = "unbounded"
    text = wording.format_value(value, digits)
    return Cell(f"{text} ({interval})" if interval else text, value)


def is_unbounded(row: Mapping[str, Any]) -> bool:
    """Return whether Fieller's set has no end: the bias removed may be 0."""
    holds_zero = bool(row["bias_removed_low"] <= 0 <= row["bias_removed_high"])
    is_defined = not math.isnan(row["price"]) and math.isnan(row["price_low"])
    return holds_zero and is_defined


def _explain(rows: list[dict[str, Any]]) -> list[str]:
    accuracy = make_heading(rows[0]["accuracy"])
    notes = [
        f"Accuracy lost: {accuracy} of the model beside it minus that of the re-ranked one.",
        "Bias removed: by how much the metric is nearer to its best direction, or to 0.",
        "Price: accuracy lost for one unit of bias removed, n/a where none is removed.",
        "In brackets: 95% intervals of the differences by unit; Fieller's for the price.",
    ]
    unbounded = "Unbounded: the bias removed is not significantly different from 0."
    return [*notes, *[unbounded] * any(map(is_unbounded, rows))]


_GROUP_BY = [
    *("dataset", "seed", "fold", "metric", "k", "test", "between"),
    *("correction", "family", "alpha", "part"),
]
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
        title: The metric, ``nDCG@10``.
        metric: Its heading.
        direction: Which values are better.
        place: Dataset, seed and fold.
        test: The test's name.
        between: What was compared: ``models``, ``groups``, ...
        part: The query label and item attribute value they are restricted to, blank for all.
        rows: Rows of ``significance.csv``.
    """

    title: str
    metric: str
    direction: Direction
    place: tuple[str, str, str]
    test: str
    between: str
    part: str
    rows: tuple[Row, ...]

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
        return ", ".join(filter(None, [self.metric, self.part]))

    def names(self) -> list[str]:
        """Return what is compared, in order of appearance."""
        return list(dict.fromkeys(str(row[side]) for side in ("a", "b") for row in self.rows))

    def method(self) -> str:
        """Return the test, the correction and the corrected family as text."""
        return describe_methods([self])


def describe_methods(comparisons: Sequence[Comparisons]) -> str:
    """Return the tests, corrections and families of comparisons as text, without repetition."""
    kinds: dict[tuple[str, str, float], list[Comparisons]] = {}
    for comparison in comparisons:
        row = comparison.rows[0]
        kinds.setdefault((row["correction"], row["family"], row["alpha"]), []).append(comparison)
    return "; ".join(map(_describe_correction, kinds.values()))


def describe_test(name: str) -> str:
    """Return the name of a test as text, with the settings that tell it from others of the run.

    >>> describe_test("sign_flip(permutations=99)")
    'sign-flip permutation test (permutations=99)'
    """
    start, opening, settings = name.partition("(")
    return f"{_TESTS[start]} {opening}{settings}".strip() if start in _TESTS else name


def _describe_correction(comparisons: Sequence[Comparisons]) -> str:
    """Return the tests of comparisons that share correction, family and alpha."""
    row = comparisons[0].rows[0]
    names = dict.fromkeys(comparison.test for comparison in comparisons)
    tests = " and ".join(map(describe_test, names))
    alpha = f"alpha {row['alpha']:g}"
    if all(math.isnan(row.get("p", 0.0)) for item in comparisons for row in item.rows):
        return f"{tests}, no p-value"
    if row["correction"] in {"", "none"}:
        return f"{tests}, no correction, {alpha}"
    correction = _CORRECTIONS.get(row["correction"], row["correction"])
    sizes = {comparison.rows[0]["family_size"] for comparison in comparisons}
    family = _FAMILIES.get(row["family"], "over {}").format(_format_sizes(sizes))
    family = "over one comparison" if sizes == {1.0} else family
    return f"{tests}, {correction} {family}, {alpha}"


def _format_sizes(sizes: set[float]) -> str:
    """Return the sizes of families as text: ``3 to 84 comparisons``."""
    defined = sorted(size for size in sizes if not math.isnan(size))
    if not defined:
        return "n comparisons"
    largest = format_count(defined[-1], "comparison")
    return largest if defined[0] == defined[-1] else f"{defined[0]:,.0f} to {largest}"


def is_significant(row: Row) -> bool:
    """Return whether a row of ``significance.csv`` is significant."""
    return str(row["significant"]).casefold() in {"true", "1"}


def find_better_side(row: Row, direction: Direction) -> str:
    """Return ``a`` or ``b``, whichever mean is better, or blank if neither is shown to be.

    Where the direction is ``zero``, two means that differ may be equally far from 0 on opposite
    sides: |a| and |b| differ only if both a - b and a + b differ from 0. The test of the row
    covers the difference; the sum counts as different from 0 if it exceeds ``reach``.

    The effect size of a rank test may contradict the means, which a few users can dominate. Then
    neither side is better.

    >>> find_better_side({"mean_a": 0.2, "mean_b": 0.1}, "higher")
    'a'
    >>> find_better_side({"mean_a": 0.2, "mean_b": -0.21, "reach": 0.02}, "zero")
    ''
    """
    a, b = to_loss(row["mean_a"], direction), to_loss(row["mean_b"], direction)
    if row.get("effect_size", math.nan) * (row["mean_a"] - row["mean_b"]) < 0:
        return ""
    if direction == "zero" and not abs(row["mean_a"] + row["mean_b"]) > row["reach"]:
        return ""
    return "a" if a < b else "b" if b < a else ""


@lru_cache(maxsize=2)
def collect_comparisons(run: RunTables) -> tuple[Comparisons, ...]:
    """Return the headline comparisons: between models first, then by order of the metrics."""
    if run.significance.empty:
        return ()
    definitions = collect_definitions(run)
    half_widths = {
        (*_identify(row), row["model"]): (row["ci_high"] - row["ci_low"]) / 2
        for row in to_records(run.metrics)
    }
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in _select_rows(run):
        key = tuple(str(row[name]) for name in _GROUP_BY)
        groups.setdefault(key, []).append(_add_reach(row, half_widths))
    comparisons = []
    for rows in groups.values():
        row = rows[0]
        title = format_title(row["metric"], row["k"])
        metric = definitions.get(title) or Definition(title, title)
        kind = row["test"], row["between"], row["part"]
        place = get_place(row)
        comparisons.append(
            Comparisons(title, metric.heading, metric.direction, place, *kind, tuple(rows))
        )
    order = {title: number for number, title in enumerate(definitions)}
    comparisons.sort(
        key=lambda item: (not item.compares_models, order.get(item.title, len(order)))
    )
    return tuple(comparisons)


def _select_rows(run: RunTables) -> Iterator[Row]:
    """Yield the headline rows of ``significance.csv`` with ``part``, those of models first."""
    of_models = run.significance["between"].str.startswith("model").to_numpy(dtype=bool)
    for row in to_records(select_headline(run, run.significance[of_models])):
        yield {**row, "part": " ".join(row[name] for name in _PART).strip()}
    within = run.significance[~of_models]
    for _, rows in within.groupby(["metric", "k"], sort=False, dropna=False):
        for row in to_records(select_headline(run, rows)):
            yield {**row, "part": ""}


def find_wins(comparisons: Comparisons) -> dict[str, set[str]]:
    """Return, for each model, the models that it is significantly better than."""
    wins: dict[str, set[str]] = {name: set() for name in comparisons.names()}
    for row in filter(is_significant, comparisons.rows):
        if side := find_better_side(row, comparisons.direction):
            wins[row[side]].add(row["b" if side == "a" else "a"])
    return wins


def _add_reach(row: Row, half_widths: Mapping[tuple[str, ...], float]) -> Row:
    """Return a row with ``reach``: an upper bound of the corrected half width of a + b."""
    key = _identify(row)
    widths = [half_widths.get((*key, row[side]), math.nan) for side in ("a", "b")]
    tests = 1.0 if row["correction"] in {"", "none"} else max(row["family_size"], 1.0)
    level = -NormalDist().inv_cdf(row["alpha"] / 2 / tests) / NormalDist().inv_cdf(0.975)
    return {**row, "reach": level * sum(widths)}


def _identify(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in _ESTIMATE)
