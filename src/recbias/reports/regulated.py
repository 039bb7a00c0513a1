"""The audit card in the order that two rules on audits ask for, with what a run cannot fill in.

NYC Local Law 144 of 2021 (6 RCNY 5-300 to 5-304), and the Commission Delegated Regulation (EU)
2024/436 on audits under Article 37 of the Digital Services Act. A form holds what the definitions
of the rule allow to compute; it is neither an audit by an independent auditor nor legal advice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.grouping import JOIN, parse_uncertain_label
from recbias.core.measures import SERVED, compute_wilson_interval
from recbias.reports import views
from recbias.reports.run import RunTables
from recbias.reports.tables import build_check_table
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    interval_cell,
    make_heading,
    number_cell,
    pick,
    tabulate,
    ungroup,
)
from recbias.statistics.intervals import compare_share_ratio

_LEAST_SHARE = 0.02
"""The share of the data below which a category may be left out of impact ratios (5-301(d))."""

_NOTE = (
    "A category below 2 % of the individuals has no impact ratio (5-301(d)), because its rate is "
    "that of few. The intervals are no part of the rule."
)

_SEX, _RACE = frozenset({"sex", "gender"}), frozenset({"race", "ethnicity", "race_ethnicity"})
_REQUIRED: Mapping[str, Callable[[set[str]], bool]] = {
    "sex": lambda parts: parts <= _SEX,
    "race or ethnicity": lambda parts: parts <= _RACE,
    "sex with race or ethnicity": lambda parts: bool(parts & _SEX) and bool(parts & _RACE),
}

_MISSING_OF_LL144 = """\
5-300: whether the auditor is independent.
5-301: the individuals are the users or prompts that are asked. Where items are the candidates, \
there is no rate: a run has no label of a single item.
5-302: whether the data are historical data of the tool or test data, and why.
5-303: the source and explanation of the data, the date of the audit, and the date on which the \
tool was first used.
""".splitlines()

_MISSING_OF_EU = """\
the obligation of Regulation (EU) 2022/2065 that a benchmark stands for, whether a conclusion is \
positive with comments, recommendations, and the opinion on all obligations together.
inherent and control risk. Of the detection risk there is the sampling of units, as intervals.
materiality thresholds, other than the limits of the checks.
evidence from the provider: its systems, controls, staff and documents.
how the data were sampled before they came into the run.
independence and expertise of the auditor (Article 37(3) of Regulation (EU) 2022/2065).
the audit implementation report, which is the provider's.
""".splitlines()


@dataclass(frozen=True)
class Form:
    """A form of the card: its title, its tables, and what the run cannot fill in."""

    title: str
    tables: Sequence[Table]
    missing: Sequence[str]


def fill_ll144(run: RunTables) -> Form:
    """Return the bias audit of NYC Local Law 144, of the people who are asked, by their labels.

        selection rate = selected / individuals          of values that are 0 or 1
        scoring rate = above the median / individuals    the median of the whole sample
        impact ratio = rate / the largest rate of a category

    A category with less than 2 % of the individuals has a rate, but no impact ratio, and is not
    the category that others are divided by. Individuals in an unknown category count in the 2 %,
    and in the median where the spec has the metric without ``by:`` too. With several seeds or
    folds an individual has the share of them in which it is selected, or above their median.

    Source:
        6 RCNY 5-300 (definitions), 5-301 (bias audit).
    """
    tables, shown = [], set[tuple[str, str]]()
    for (dataset, metric, label), values, sample in _list_scores(run):
        shown.add((metric, label))
        title, asked = f"{metric} by {label}, {dataset}", _count_asked(run, dataset)
        tables.append(_tabulate_rates(values, sample, title, asked))
    absent = [
        f"6 RCNY 5-301: no table is by {name}: to have one, add to the spec a metric "
        "with by:, without gap:, in which higher is better."
        for name, is_met in _REQUIRED.items()
        if not any(is_met(_split_label(label)) for _, label in shown)
    ]
    return Form(
        "Bias audit in the form of NYC Local Law 144",
        tables,
        (
            *absent,
            *_explain_left_out(run, shown),
            *_MISSING_OF_LL144,
        ),
    )


def _split_label(label: str) -> set[str]:
    return {part.strip() for part in label.lower().split(JOIN)}


def _find_obstacle(metric: views.Definition) -> str:
    """Return why a metric by group has no rate of a category, blank if nothing is known."""
    if metric.gap:
        return f"gap: {metric.gap} is one number, without the values of the categories"
    if metric.group_direction not in {"higher", "none"}:
        better = views.DIRECTION_LABELS[metric.group_direction]
        return f"{better}, so that a value above the median is no selection"
    if parse_uncertain_label(str(metric.parameters["by"])) is not None:
        return "its categories are known as probabilities"
    return ""


def _explain_left_out(run: RunTables, shown: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the metrics by group that have no table, and why.

    A gap whose groups are a metric of the run too is left out without a line of its own.
    """
    metrics = [each for each in views.collect_definitions(run).values() if "by" in each.parameters]
    groups = {each.groups_heading for each in metrics if not each.gap}
    for metric in metrics:
        is_shown = (make_heading(ungroup(metric.title)), str(metric.parameters["by"])) in shown
        if not (is_shown or (metric.gap and metric.groups_heading in groups)):
            why = _find_obstacle(metric) or "no compared model has values of single individuals"
            yield f"6 RCNY 5-301: {metric.heading} is left out: {why}."


_Scores: TypeAlias = tuple[tuple[str, str, str], pd.DataFrame, pd.DataFrame]


def _list_scores(run: RunTables) -> Iterator[_Scores]:
    """Yield dataset, metric and label with the values of individuals in categories, and of all.

    Those of all are empty if the run does not have the metric without its groups.
    """
    if run.per_unit is None:
        return
    rows = run.per_unit.astype(dict.fromkeys(("group", "metric", "target", "dataset"), str))
    rows = rows[~rows["model"].isin(views.list_baselines(run)) & (rows["target"] == "")]
    titles = [views.format_title(*pair) for pair in zip(rows["metric"], rows["k"], strict=True)]
    rows = rows.assign(title=titles)
    for title, metric in views.collect_definitions(run).items():
        label, plain = str(metric.parameters.get("by", "")), ungroup(title)
        if not label or _find_obstacle(metric):
            continue
        values = rows[(rows["title"] == title) & ~rows["group"].isin({"", SERVED})]
        sample = rows[(rows["title"] == plain) & (rows["group"] == "")]
        for dataset, own in values.groupby("dataset", sort=False):
            key = (str(dataset), make_heading(plain), label)
            yield key, own, sample[sample["dataset"] == dataset]


def _count_asked(run: RunTables, dataset: str) -> int:
    asked = {each["dataset"]: each.get("asked", 0) for each in run.manifest.get("queries", [])}
    return int(asked.get(dataset, 0))


def _tabulate_rates(values: pd.DataFrame, sample: pd.DataFrame, title: str, asked: int) -> Table:
    """Return one row for each model and category."""
    context = ["model", "seed", "fold"]
    scored, n_known = values.dropna(subset=["value"]), values["unit_id"].nunique()
    is_selection = bool(scored["value"].isin((0.0, 1.0)).all())
    known = scored.drop_duplicates([*context, "unit_id"])
    medians = (known if sample.empty else sample).groupby(context, sort=False, observed=True)
    median = medians["value"].median().rename("median").reset_index()
    scored = scored.merge(median, on=context, how="left")
    chosen = scored["value"] == 1 if is_selection else scored["value"] > scored["median"]
    each = [*context[:1], "group", "unit_id"]
    shares = scored.assign(chosen=chosen).groupby(each, sort=False, observed=True)["chosen"].mean()
    rows: list[dict[str, Any]] = []
    for model, own in shares.groupby(level=0, sort=False, observed=True):
        counts = own.groupby(level=1, sort=False, observed=True).agg(["size", "sum"])
        rows += _list_rates(str(model), counts, max(asked, n_known))
    places = int(len(median) > median["model"].nunique())
    kind = "selected" if is_selection else "above the median"
    is_whole = not sample.empty or asked == n_known
    of = "sample" if is_whole else "individuals in a known category"
    texts = [
        f"{' to '.join(dict.fromkeys(f'{end:.4g}' for end in (own.min(), own.max())))} ({model})"
        for model, own in median.groupby("model", sort=False, observed=True)["median"]
    ]
    notes = [
        "Selection rate: the share of values of 1."
        if is_selection
        else f"Scoring rate: the share above the median of the {of}: {', '.join(texts)}.",
        *["Selected or above the median: the mean over seeds and folds."] * places,
        f"Individuals in an unknown category: {asked - n_known:,} of {asked:,}."
        if asked >= n_known
        else "The number of individuals in an unknown category is not known.",
        _NOTE,
    ]
    return tabulate(
        title,
        rows,
        {
            **pick("model", "category"),
            "individuals": lambda row: number_cell(row["size"], 0),
            kind: lambda row: number_cell(row["chosen"], places),
            "rate": lambda row: number_cell(row["rate"], 3),
            "95% interval": lambda row: interval_cell(row["low"], row["high"], 3),
            "impact ratio": lambda row: number_cell(row["ratio"], 3),
            "its 95% interval": lambda row: interval_cell(
                row["ends"][0], row["ends"][1], 3, "none"
            ),
        },
        notes,
    )


def _list_rates(model: str, counts: pd.DataFrame, total: int) -> Iterator[dict[str, Any]]:
    """Yield the rates of each category of a model."""
    sizes, chosen = (counts[name].to_numpy(np.float64) for name in ("size", "sum"))
    rates, large = chosen / sizes, sizes >= _LEAST_SHARE * total
    best = int(np.argmax(np.where(large, rates, -1.0)))
    for at, category in enumerate(counts.index):
        size, rate = float(sizes[at]), float(rates[at])
        ratio, ends = math.nan, (math.nan, math.nan)
        if large[at] and rates[best] > 0:
            ratio = rate / float(rates[best])
            if at != best:
                ends = compare_share_ratio(rate, size, float(rates[best]), float(sizes[best]))
        low, high = map(float, compute_wilson_interval(rates[at], sizes[at]))
        row = {"model": model, "category": category, "size": size, "chosen": float(chosen[at])}
        yield {**row, "rate": rate, "low": low, "high": high, "ratio": ratio, "ends": ends}


_CONCLUSIONS = {"pass": "positive", "fail": "negative"}


def fill_eu(run: RunTables) -> Form:
    """Return the findings for an audit report under Delegated Regulation (EU) 2024/436.

    Each check is a benchmark. A check that passes supports the conclusion positive, one that fails
    negative; an undecided one supports none. ``positive with comments`` is up to the auditor.

    Source:
        Delegated Regulation (EU) 2024/436; Regulation (EU) 2022/2065, Article 37.
    """
    checks = build_check_table(run)
    tables = []
    if checks is not None:
        verdicts = [row[-1].text.partition(" ")[0] for row in checks.rows]
        columns = (Column("obligation"), *checks.columns, Column("supports"))
        rows = tuple(
            (Cell("to be named"), *row, Cell(_CONCLUSIONS.get(verdict, "no conclusion")))
            for row, verdict in zip(checks.rows, verdicts, strict=True)
        )
        tables.append(Table("Benchmarks and findings", columns, rows))
    none = "the run has no benchmark: add checks: to the spec."
    return Form(
        "Findings for an audit report under Delegated Regulation (EU) 2024/436",
        tables,
        (
            *([] if tables else [none]),
            *_MISSING_OF_EU,
        ),
    )


FORMS = {"card_ll144": fill_ll144, "card_eu": fill_eu}
"""The forms by their names among the formats of reports."""
