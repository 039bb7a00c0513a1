"""``report.md``: the report as plain text that renders on code hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from recbias.reports.markup import one_line
from recbias.reports.plots.search_plots import SearchPlots
from recbias.reports.views.comparisons import Comparisons, comparisons, is_significant
from recbias.reports.views.definitions import WORDS, Definition, definitions
from recbias.reports.views.findings import failures, findings, made, measured, warnings
from recbias.reports.views.grid import Cell, Table
from recbias.reports.views.rounding import decimals, p_value, shown
from recbias.reports.views.trials import overview, said, trials_table, untold
from recbias.reports.writers.content import Content

LONGEST = 60
"""A family with more comparisons than this is counted, not listed; so is a search's trials."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#!])")


def markdown_text(said: object) -> str:
    r"""Return a text in which Markdown and HTML see letters only.

    >>> print(markdown_text("a|b <i>_x_</i>"))
    a\|b &lt;i&gt;\_x\_&lt;/i&gt;
    """
    plain = one_line(said).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)


def markdown_report(content: Content) -> str:
    """Return the report; figures are looked for in ``figures/``."""
    run = content.run
    parts = [
        f"# {markdown_text(run.manifest.get('name', 'Report'))}",
        *_list_section("Failed", failures(run)),
        *_list_section("Warnings", warnings(run)),
        *_list_section("In short", findings(run)),
        "## What was measured",
        _listed(f"{each.name}: {each.said}" for each in measured(run)),
        *(part for table in content.tables for part in _section(table)),
        *_figures(content),
        *_significance(comparisons(run)),
        *_searches(content.searches),
        "## Definitions",
        *(_definition(each) for each in definitions(run).values()),
        "## Models",
        markdown_table(content.models),
        "## How it was made",
        _listed(f"{each.name}: {each.said}" for each in made(run)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_table(table: Table) -> str:
    """Return a pipe table with its footnotes."""
    rule = ["--:" if column.numeric else ":--" for column in table.columns]
    lines = [[markdown_text(column.title) for column in table.columns], rule]
    lines += [[_cell(cell) for cell in row] for row in table.rows]
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    notes = "\n\n".join(markdown_text(note) for note in table.notes)
    return f"{drawn}\n\n{notes}" if notes else drawn


def _cell(cell: Cell) -> str:
    said = markdown_text(cell.text)
    if cell.best:
        said = f"**{said}**"
    return f"{said}<sup>{markdown_text(cell.mark)}</sup>" if cell.mark else said


def _section(table: Table) -> list[str]:
    return [f"## {markdown_text(table.title)}", markdown_table(table)]


def _list_section(title: str, said: Sequence[str]) -> list[str]:
    return [f"## {title}", _listed(said)] if said else []


def _listed(said: Iterable[str]) -> str:
    return "\n".join(f"- {markdown_text(each)}" for each in said)


def _figures(content: Content) -> list[str]:
    parts = ["## Figures"] if content.gallery.overview or content.gallery.skipped else []
    for dataset, figure in content.gallery.overview:
        title = markdown_text(content.figure_title(dataset, figure))
        parts += [
            f"![{title}](figures/{figure.name}.svg)",
            f"{title}. {markdown_text(figure.caption)}",
        ]
    return [*parts, _listed(content.gallery.skipped)]


def _significance(found: Sequence[Comparisons]) -> list[str]:
    parts = ["## Significance"] if found else []
    for each in found:
        said = f"{each.significant:,} of {len(each.rows):,} significant; {each.method()}."
        title = markdown_text(" ".join(filter(None, [each.title, each.part])))
        parts.append(f"**{title}** between {markdown_text(each.between)}: {markdown_text(said)}")
        if len(each.rows) <= LONGEST:
            parts.append(_pairs(each))
        else:
            parts.append("Each comparison stands in `significance.csv`.")
    return parts


def _pairs(found: Comparisons) -> str:
    places = decimals(row["difference"] for row in found.rows)
    lines = ["| a | b | a - b | corrected p | significant |", "| :-- | :-- | --: | --: | :-- |"]
    lines += [
        f"| {markdown_text(row['a'])} | {markdown_text(row['b'])} "
        f"| {shown(row['difference'], places)} | {markdown_text(p_value(row['p_adjusted']))} "
        f"| {'yes' if is_significant(row) else 'no'} |"
        for row in found.rows
    ]
    return "\n".join(lines)


def _searches(found: Sequence[SearchPlots]) -> list[str]:
    if not found:
        return []
    parts = ["## Search for settings", markdown_table(overview([each.search for each in found]))]
    for each in found:
        parts += [f"### {markdown_text(each.search.title)}", markdown_text(said(each.search))]
        for figure in each.figures:
            parts.append(f"![{markdown_text(figure.title)}](figures/{figure.name}.svg)")
            parts.append(markdown_text(figure.caption))
        parts.append(markdown_text(untold(each.search)))
        if len(each.search.trials) <= LONGEST:
            parts.append(markdown_table(trials_table(each.search)))
        else:
            parts.append("Each trial stands in `trials.csv`.")
    return parts


def _definition(each: Definition) -> str:
    source = f" Source: {each.source}" if each.source else ""
    values = f" Values: {each.values}." if each.values else ""
    direction = WORDS[each.direction].capitalize()
    said = [
        f"**{markdown_text(each.title)}**: {markdown_text(each.summary)}",
        _code(each.formula) if each.formula else "",
        markdown_text(f"{direction}.{values}{source}"),
    ]
    return "\n\n".join(filter(None, said))


def _code(said: str) -> str:
    """Return an indented block, in which Markdown sees letters only."""
    return "\n".join(f"    {line}" for line in said.splitlines())
