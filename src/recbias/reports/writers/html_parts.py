"""Tables, lists of facts and alerts as HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.views.comparisons import Comparisons, is_significant
from recbias.reports.views.definitions import WORDS
from recbias.reports.views.findings import Fact
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import decimals, p_value, shown

MINUS = "\N{MINUS SIGN}"
FEW = 6
"""Alerts beyond this many are folded."""

_FIRST = {"higher": "descending", "lower": "ascending"}


def html_table(table: Table, *, sortable: bool = True, tall: bool = False) -> Safe:
    """Return a table in a box of its own that scrolls, with its footnotes below."""
    heads = [_head(column) for column in table.columns]
    first = next((at for at, column in enumerate(table.columns) if column.numeric), 1)
    marks = max((len(each.mark) for row in table.rows for each in row[first:]), default=0)
    rows = [
        tag(
            "tr", *(_cell(cell, table.columns[at], head=at < first) for at, cell in enumerate(row))
        )
        for row in table.rows
    ]
    drawn = tag(
        "table",
        tag("thead", tag("tr", *heads)),
        tag("tbody", *rows),
        class_="sortable" if sortable else None,
        aria_label=one_line(table.title),
        style=f"--marks:{marks}" if marks else None,
    )
    notes = tag("ul", *(tag("li", one_line(each)) for each in table.notes), class_="notes")
    return join(boxed(drawn, table.title, tall=tall), notes if table.notes else "")


def boxed(inside: Safe, said: str, *, tall: bool = False) -> Safe:
    """Return a box that scrolls by itself, by keyboard too."""
    kind = "box tall" if tall else "box"
    return tag("div", inside, class_=kind, tabindex=0, role="region", aria_label=one_line(said))


def _head(column: Column) -> Safe:
    said = WORDS[column.direction] if column.direction != "none" else ""
    return tag(
        "th",
        tag("span", one_line(column.title), class_="name"),
        tag("span", said, class_="way") if said else "",
        scope="col",
        class_="n" if column.numeric else None,
        title=one_line(column.note) or None,
        data_first=_FIRST.get(column.direction),
    )


def _cell(cell: Cell, column: Column, *, head: bool) -> Safe:
    kinds = [kind for kind, on in (("n", column.numeric), ("best", cell.best)) if on]
    interval = tag("span", negative(cell.interval), class_="interval") if cell.interval else ""
    value = None if math.isnan(cell.value) else repr(float(_sorted_by(cell.value, column)))
    return tag(
        "th" if head else "td",
        negative(one_line(cell.text)) if column.numeric else one_line(cell.text),
        tag("sup", cell.mark) if cell.mark or column.numeric else "",
        interval,
        scope="row" if head else None,
        class_=" ".join(kinds) or None,
        title=one_line(cell.note) or None,
        data_value=value if column.numeric and value else "nan" if column.numeric else None,
    )


def _sorted_by(value: float, column: Column) -> float:
    return abs(value) if column.direction == "zero" else value


def negative(said: str) -> str:
    """Return a text with true minus signs before figures.

    >>> negative("-0.5 to -0.1, ml-1m")
    '−0.5 to −0.1, ml-1m'
    """
    return re.sub(r"(?<![^\s(])-(?=\d)", MINUS, said)


def facts(found: Iterable[Fact]) -> Safe:
    """Return names and values in columns."""
    pairs = [tag("div", tag("dt", each.name), tag("dd", one_line(each.said))) for each in found]
    return tag("dl", *pairs, class_="facts")


def alert(kind: str, title: str, said: Sequence[str]) -> Safe:
    """Return a box that cannot be missed, or nothing; many entries are folded behind the first."""
    if not said:
        return Safe("")
    entries = [tag("li", one_line(each)) for each in said]
    parts = [tag("h2", title), tag("ul", *entries[:FEW])]
    if len(entries) > FEW:
        more = tag("summary", f"{len(entries) - FEW} more")
        parts.append(tag("details", more, tag("ul", *entries[FEW:])))
    return tag("section", *parts, class_=f"alert {kind}", role="note")


def pairs(found: Comparisons) -> Safe:
    """Return the comparisons of a family as a table that can be filtered."""
    places = decimals(row["difference"] for row in found.rows)
    numbers = ("difference", "95% interval", "statistic", "p", "corrected p", "effect size")
    columns = [Column("a"), Column("b"), *(Column(each, numeric=True) for each in numbers)]
    heads = [_head(each) for each in (*columns, Column("significant"))]
    rows = [_pair(row, places) for row in found.rows]
    table = tag(
        "table",
        tag("thead", tag("tr", *heads)),
        tag("tbody", *rows),
        class_="sortable",
    )
    only = tag("input", type="checkbox", class_="only-significant")
    tools = tag("div", tag("label", only, "Only significant"), class_="tools")
    return tag(
        "div", tools, boxed(table, f"Comparisons on {found.title}", tall=True), class_="pairs"
    )


def _pair(row: Mapping[str, object], places: int) -> Safe:
    sure = is_significant(row)
    low, high = (float(str(row[each])) for each in ("ci_low", "ci_high"))
    interval = f"{shown(low, places)} to {shown(high, places)}" if not math.isnan(low) else ""
    model = f"{row['model']}: " if row["model"] else ""
    return tag(
        "tr",
        tag("th", one_line(f"{model}{row['a']}"), scope="row"),
        tag("td", one_line(row["b"])),
        _number(row["difference"], places),
        tag("td", negative(interval), class_="n", data_value=low),
        _number(row["statistic"], 2),
        tag("td", p_value(float(str(row["p"]))), class_="n", data_value=row["p"]),
        tag(
            "td", p_value(float(str(row["p_adjusted"]))), class_="n", data_value=row["p_adjusted"]
        ),
        _number(row["effect_size"], 2),
        tag("td", "yes" if sure else "no"),
        class_=None if sure else "unsure",
    )


def _number(value: object, places: int) -> Safe:
    figure = float(str(value))
    return tag("td", negative(shown(figure, places)), class_="n", data_value=figure)
