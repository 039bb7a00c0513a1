"""The tables of an audit card for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from recbias.reports.audit_cards.card import (
    POWER,
    Card,
    Comparison,
    Estimate,
    MetricPart,
)
from recbias.reports.audit_cards.card_facts import count_verdicts
from recbias.reports.views.conclusions.effects import explain_zero
from recbias.reports.views.definitions import DIRECTION_LABELS
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

_N = "n: the units, such as users, that have a value; undefined: those that have none."
_MOVED = (
    "An interval without the value: the value is of the users of the run, the interval is for all "
    "users that could be sampled, and corrects the bias of popularity counted in the same data."
)
_UNDECIDED = "Undecided: the interval has values on both sides of the line."

_FIT = ("dataset", "seed", "fold", "group", "target")


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
    table = _build_table("Estimates", titles, ordered, lambda row: _build_estimate(row, varying))
    notes = [*table.notes, *([_N] if ordered else [])]
    if any(not low <= value <= high for value, low, high in map(_list_ends, card.estimates)):
        notes.append(_MOVED)
    return replace(table, notes=tuple(notes))


def _list_ends(row: Estimate) -> tuple[float, float, float]:
    """Return a value and the ends of its interval, infinite ones if it has none."""
    value, low, high = (_to_float(value) for value in (row.value, row.ci_low, row.ci_high))
    has_interval = not any(map(math.isnan, (value, low, high)))
    return (value, low, high) if has_interval else (0.0, -math.inf, math.inf)


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
        "Difference: a minus b. Its interval has the level of the test, not corrected. "
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
    titles = ("verdict", "metric", "model", "group", "target", "line", "value", "95% interval")
    cells = []
    for row in rows:
        value, low, high = map(_to_float, (row.value, row.ci_low, row.ci_high))
        places = count_decimals([value, low, high])
        texts = (make_heading(row.metric), row.model, row.group, row.target, row.line)
        numbers = format_value(value, places), format_interval(low, high, places) or "none"
        verdict = (
            f"{row.verdict} (strict)" if row.failed and row.verdict != "fail" else row.verdict
        )
        cells.append(tuple(map(Cell, (verdict, *texts, *numbers))))
    columns = make_columns(titles, numeric=("value", "95% interval"))
    notes = (f"{count_verdicts(rows)}. {_UNDECIDED}",) if rows else ()
    table = Table("Checks", columns, tuple(cells), notes)
    used = [at for at in range(len(columns)) if any(row[at].text for row in cells)]
    return table.select_columns(used)


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
