"""The tables and facts of an audit card for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from recbias.reports.audit_cards.card import (
    POWER,
    Card,
    Comparison,
    DatasetPart,
    Estimate,
    MetricPart,
    ModelPart,
)
from recbias.reports.views.conclusions.effects import explain_zero
from recbias.reports.views.definitions import DIRECTION_LABELS
from recbias.reports.views.facts import Fact, format_setting
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headings import make_heading
from recbias.reports.views.rounding import (
    count_decimals,
    format_count,
    format_interval,
    format_p_value,
    format_value,
)

MOST_LINES = 40
"""The number of estimates and of comparisons on the page; all are in ``card.json``."""

_FIT = ("dataset", "seed", "fold", "group", "target")


def describe_subject(card: Card) -> list[Fact]:
    """Return what was audited: models, datasets, versions and the digest of the spec."""
    audited = card.audited
    libraries = [f"{name} {version}" for name, version in audited.libraries.items() if version]
    return [
        Fact("Experiment", audited.name),
        Fact("Models", "; ".join(map(_describe_model, audited.models))),
        *(Fact("Dataset", _describe_dataset(dataset)) for dataset in audited.datasets),
        *([Fact("Split", _describe(audited.split))] if audited.split else []),
        Fact("Seeds", ", ".join(map(str, audited.seeds))),
        Fact("recbias", f"{audited.recbias}, commit {audited.commit or 'not known'}"),
        Fact("Versions", ", ".join([f"Python {audited.python}", *libraries])),
        Fact("Digest of the spec", audited.spec_digest),
    ]


def _describe(part: Any) -> str:
    return format_setting({"name": part.label, **part.parameters})


def _describe_model(model: ModelPart) -> str:
    searched = f", tuned: {', '.join(model.searched)}" if model.searched else ""
    return _describe(model) + searched


def _describe_dataset(dataset: DatasetPart) -> str:
    counts = ", ".join(
        f"{n:,} {name.replace('_', ' ')}" for name, n in dataset.counts.items() if n
    )
    filters = ", ".join(map(_describe, dataset.filters))
    files = ", ".join(f"{name} {digest[:16]}" for name, digest in dataset.files.items())
    texts = [counts, filters and f"filters: {filters}", files and f"SHA-256 of files: {files}"]
    return "; ".join([dataset.label, *filter(None, texts)])


def describe_people(card: Card) -> list[Fact]:
    """Return whom the audit was on: the queries, and the size of each group."""
    facts = []
    for queries in card.queries:
        settings = {name: value for name, value in queries.parameters.items() if value}
        settings = {
            name: value for name, value in settings.items() if (name, value) != ("folds", 1)
        }
        count = format_count(queries.asked, queries.unit)
        text = ", ".join(filter(None, [count, format_setting(settings)]))
        facts.append(Fact(f"Queries of {queries.dataset}", text))
    for dataset in dict.fromkeys(group.dataset for group in card.groups):
        groups = [f"{g.group} {g.n:,}" for g in card.groups if g.dataset == dataset]
        facts.append(Fact(f"Groups of {dataset}", ", ".join(groups)))
    return facts


def tabulate_definitions(card: Card) -> Table:
    """Return one row for each definition, with the metrics that share it."""
    shared: dict[tuple[str, ...], list[MetricPart]] = {}
    for metric in card.definitions:
        key = (metric.name, metric.direction, metric.formula, metric.summary, metric.source)
        shared.setdefault(key, []).append(metric)
    rows = [
        (
            Cell(", ".join(make_heading(metric.metric) for metric in metrics)),
            Cell(metrics[0].summary),
            Cell(metrics[0].formula),
            Cell(DIRECTION_LABELS[metrics[0].direction]),
            Cell(metrics[0].range),
            Cell(metrics[0].source),
        )
        for metrics in shared.values()
    ]
    titles = ("metric", "definition", "formula", "direction", "range", "source")
    return Table("Definitions", make_columns(titles), tuple(rows))


def tabulate_estimates(card: Card) -> Table:
    """Return the first estimates, those over all queries before those of groups and targets."""
    ordered = sorted(card.estimates, key=lambda row: (bool(row.target), bool(row.group)))
    varying = _list_varying(ordered)
    titles = ("metric", "model", *varying, "value", "95% interval", "n", "undefined")
    return _build_table("Estimates", titles, ordered, lambda row: _build_estimate(row, varying))


def _build_estimate(row: Estimate, varying: Sequence[str]) -> list[Cell]:
    value, low, high = map(_to_float, (row.value, row.ci_low, row.ci_high))
    places = count_decimals([value, low, high])
    return [
        *map(
            Cell, (make_heading(row.metric), row.model, *(getattr(row, name) for name in varying))
        ),
        Cell(format_value(value, places), value),
        Cell(format_interval(low, high, places) or "none", low),
        *(Cell(format_value(_to_float(n), 0), _to_float(n)) for n in (row.n, row.undefined)),
    ]


def tabulate_comparisons(card: Card) -> Table:
    """Return the first comparisons: those within a model first, significant ones before others."""
    ordered = sorted(
        card.comparisons,
        key=lambda row: (bool(row.target), row.between == "models", not row.significant),
    )
    varying = _list_varying(ordered)
    titles = (
        *("metric", "model", "a", "b", *varying, "difference", "interval", "p", "adjusted p"),
        *("significant", "detectable", "test", "correction"),
    )
    table = _build_table(
        "Comparisons", titles, ordered, lambda row: _build_comparison(row, varying)
    )
    note = (
        f"Detectable: the smallest difference that the test finds with a power of {POWER:.0%}. "
        "Correction: the method, the family and its number of tests."
    )
    shown = [
        {name: _to_float(value) if value is None else value for name, value in vars(row).items()}
        for row in ordered[:MOST_LINES]
    ]
    notes = (*table.notes, note, *filter(None, [explain_zero(shown)]))
    return Table(table.title, table.columns, table.rows, notes) if ordered else table


def _build_comparison(row: Comparison, varying: Sequence[str]) -> list[Cell]:
    numbers = map(_to_float, (row.difference, row.ci_low, row.ci_high, row.detectable))
    difference, low, high, detectable = numbers
    places = count_decimals([difference, low, high])
    alpha = _to_float(row.alpha)
    size = format_value(_to_float(row.family_size), 0)
    texts = (make_heading(row.metric), row.model, row.a, row.b)
    return [
        *map(Cell, (*texts, *(getattr(row, name) for name in varying))),
        Cell(format_value(difference, places), difference),
        Cell(format_interval(low, high, places) or "none", low),
        *(
            Cell(format_p_value(value, alpha), value)
            for value in map(_to_float, (row.p, row.p_adjusted))
        ),
        Cell("yes" if row.significant else "no"),
        Cell(format_value(detectable, places), detectable),
        Cell(row.test),
        Cell(f"{row.correction}, {row.family} of {size}, level {alpha:g}"),
    ]


def tabulate_checks(card: Card) -> Table:
    """Return the checks with their verdicts, failed ones first."""
    order = {"fail": 0, "undecided": 1, "pass": 2}
    rows = sorted(card.checks, key=lambda row: (not row.failed, order[row.verdict]))
    titles = ("metric", "model", "group", "target", "line", "value", "95% interval", "verdict")
    counts = [f"{sum(row.verdict == name for row in rows):,} {name}" for name in order]
    cells = []
    for row in rows:
        value, low, high = map(_to_float, (row.value, row.ci_low, row.ci_high))
        places = count_decimals([value, low, high])
        texts = (make_heading(row.metric), row.model, row.group, row.target, row.line)
        numbers = format_value(value, places), format_interval(low, high, places) or "none"
        verdict = (
            f"{row.verdict} (strict)" if row.failed and row.verdict != "fail" else row.verdict
        )
        cells.append(tuple(map(Cell, (*texts, *numbers, verdict))))
    columns = make_columns(titles, numeric=("value", "95% interval"))
    return Table("Checks", columns, tuple(cells), (", ".join(counts) + ".",) if rows else ())


def list_limits(card: Card) -> list[str]:
    """Return what restricts the conclusions, one sentence each."""
    limits = card.limits
    undefined = [f"{title} {n:,.0f}" for title, n in limits.undefined.items() if n]
    sentences = [*limits.failures, *limits.missing_outputs, *limits.warnings]
    if card.audited.limit:
        count = format_count(card.audited.limit, "query")
        sentences.insert(0, f"Smoke test: the first {count} only.")
    if undefined:
        sentences.append(f"Undefined values, excluded from the means: {', '.join(undefined)}.")
    for n, noun, name in (
        (limits.omitted_estimates, "estimate", "metrics.csv"),
        (limits.omitted_comparisons, "comparison", "significance.csv"),
    ):
        if n:
            sentences.append(f"{format_count(n, noun)} of a target: only in {name}.")
    return sentences


def _list_varying(rows: Sequence[Estimate] | Sequence[Comparison]) -> list[str]:
    return [name for name in _FIT if len({getattr(row, name) for row in rows}) > 1]


def _build_table(
    title: str, titles: Sequence[str], rows: Sequence[Any], build: Callable[[Any], list[Cell]]
) -> Table:
    """Return a table of the first rows without blank columns, and a note on the others."""
    cells = [build(row) for row in rows[:MOST_LINES]]
    numeric = {"value", "95% interval", "n", "undefined", "difference", "interval", "detectable"}
    columns = make_columns(titles, numeric=numeric | {"p", "adjusted p"})
    more = len(rows) - len(cells)
    notes = (f"{format_count(more, 'more row')} in card.json.",) if more > 0 else ()
    table = Table(title, columns, tuple(map(tuple, cells)), notes)
    used = [at for at in range(len(columns)) if any(row[at].text for row in cells)]
    return table.select_columns(used)


def _to_float(value: float | None) -> float:
    return math.nan if value is None else float(value)
