"""``report.html``: one file that needs nothing else, on paper, on a phone, by day and by night."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.plots.drawing.svg import Plot, read_style_sheet
from recbias.reports.plots.gallery import Plot
from recbias.reports.views.comparisons import Comparisons, comparisons
from recbias.reports.views.definitions import WORDS, Definition, definitions
from recbias.reports.views.findings import (
    Fact,
    failures,
    findings,
    made,
    measured,
    phrase,
    warnings,
)
from recbias.reports.views.run_tables import RunTables
from recbias.reports.writers.content import Content
from recbias.reports.writers.html_parts import alert, boxed, facts, html_table, negative, pairs
from recbias.reports.writers.html_provenance import making
from recbias.reports.writers.html_trials import searching

LONG = 12
"""A table with more rows than this scrolls in its box, the headline apart."""

_SECTIONS = {
    "results": "Results",
    "figures": "Figures",
    "significance": "Significance",
    "searches": "Search for settings",
    "definitions": "Definitions",
    "models": "Models",
    "making": "How it was made",
}


def html_report(content: Content) -> str:
    """Return the page."""
    title = one_line(content.run.manifest.get("name", "Report"))
    script = _packaged("page.js")
    head = tag(
        "head",
        Safe('<meta charset="utf-8">'),
        Safe('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Safe(f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">'),
        Safe('<link rel="icon" href="data:,">'),
        tag("title", f"{title} · recbias"),
        tag("style", Safe(_packaged("page.css") + read_style_sheet())),
    )
    main = join(
        _results(content),
        _figures(content),
        _significance(content),
        _section("searches", searching(content.searches)) if content.searches else "",
        _section("definitions", *map(_definition, definitions(content.run).values())),
        _section("models", html_table(content.models)),
        _section("making", *making(content.run)),
    )
    body = tag("body", _header(content, title), tag("main", main), _footer(content.run))
    body = Safe(f"{body[: -len('</body>')]}{tag('script', Safe(script))}</body>")
    return f'<!DOCTYPE html>\n<html lang="en">{head}\n{body}</html>\n'


@cache
def _packaged(name: str) -> str:
    return files("recbias.reports.writers").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Return what the page may do: nothing from outside, and no script but its own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _header(content: Content, title: str) -> Safe:
    run = content.run
    absent = {"significance": not _tested(run), "searches": not content.searches}
    shown = {key: each for key, each in _SECTIONS.items() if not absent.get(key)}
    links = [tag("li", tag("a", each, href=f"#{key}")) for key, each in shown.items()]
    said = [tag("li", negative(each)) for each in findings(run)]
    return tag(
        "header",
        tag("p", "recbias report", class_="kind"),
        tag("h1", title),
        tag("p", _byline(run), class_="quiet"),
        alert("failed", _how_many("failure", failures(run)), failures(run)),
        alert("warned", _how_many("warning", warnings(run)), warnings(run)),
        tag("ul", *said, class_="findings") if said else "",
        tag("nav", tag("ul", *links), aria_label="Sections"),
    )


def _tested(run: RunTables) -> bool:
    return not run.significance.empty


def _byline(run: RunTables) -> str:
    found = {each.name: each.said for each in made(run)}
    started = found.get("Started", "")[:16].replace("T", " ")
    took = f"took {found['Took']}" if "Took" in found else ""
    version = f"recbias {found['recbias']}" if "recbias" in found else ""
    return " · ".join(filter(None, [started, took, version]))


def _how_many(noun: str, said: list[str]) -> str:
    return f"{len(said)} {noun}{'' if len(said) == 1 else 's'}"


def _section(key: str, *inside: object) -> Safe:
    return tag("section", tag("h2", _SECTIONS[key], id=key), *inside)


def _results(content: Content) -> Safe:
    switch = tag("input", type="checkbox", class_="show-intervals")
    tools = tag("div", tag("label", switch, "Show 95% intervals"), class_="tools")
    rest = []
    for table in filter(None, [*content.by_part, content.published]):
        rest += [tag("h3", one_line(table.title)), html_table(table, tall=len(table.rows) > LONG)]
    if content.parts is not None:
        table = content.parts
        rest.append(tag("details", tag("summary", table.title), html_table(table, tall=True)))
    found = measured(content.run)
    return join(
        tag("section", tag("h2", "What was measured"), facts(found)) if found else "",
        tag(
            "div", _section("results", tools, html_table(content.summary), *rest), class_="results"
        ),
    )


def _figures(content: Content) -> Safe:
    drawn = [
        _figure(figure, content.figure_title(dataset, figure))
        for dataset, figure in content.gallery.overview
    ]
    skipped = [tag("p", one_line(each), class_="quiet") for each in content.gallery.skipped]
    return _section("figures", tag("div", *drawn, class_="figures"), *skipped)


def _figure(figure: Plot, title: str, *, class_: str | None = None) -> Safe:
    return tag(
        "figure",
        tag("h3", one_line(title)),
        boxed(figure.inline(), title),
        tag("figcaption", negative(one_line(figure.caption))),
        class_=class_,
    )


def _significance(content: Content) -> Safe:
    if not _tested(content.run):
        return Safe("")
    matrices = {id(each): figure for each, figure in content.gallery.matrices}
    found = sorted(comparisons(content.run), key=lambda each: id(each) not in matrices)
    several = len({each.place[0] for each in found}) > 1
    folded = [
        _family(
            each, matrices.get(id(each)), title=_title(each, several=several), opened=number == 0
        )
        for number, each in enumerate(found)
    ]
    return _section("significance", *folded)


def _title(found: Comparisons, *, several: bool) -> str:
    where = found.place[0] if several else ""
    return ", ".join(filter(None, [" ".join(filter(None, [found.title, found.part])), where]))


def _family(found: Comparisons, figure: Plot | None, *, title: str, opened: bool) -> Safe:
    head = f"{title}: {found.significant:,} of {len(found.rows):,} significant"
    inside = [tag("summary", one_line(head))]
    if figure is None:
        sides = "models" if found.of_models else found.between
        inside.append(tag("p", f"Between {sides}; {found.method()}.", class_="quiet"))
    else:
        inside.append(_figure(figure, "Every model against every other", class_="matrix"))
    return tag("details", *inside, pairs(found), open="" if opened else None)


def _definition(each: Definition) -> Safe:
    said = {
        "Direction": WORDS[each.direction],
        "Values": each.values,
        "Unit": each.unit,
        "Parameters": phrase(dict(each.parameters)),
        "Source": each.source,
    }
    return tag(
        "div",
        tag("h3", one_line(each.title)),
        tag("p", one_line(each.summary), class_="prose") if each.summary else "",
        tag("pre", each.formula.strip(), tabindex=0) if each.formula else "",
        facts(Fact(name, value) for name, value in said.items() if value),
        class_="definition",
    )


def _footer(run: RunTables) -> Safe:
    run_id = one_line(run.manifest.get("run_id", ""))
    said = "Every figure stands in metrics.csv, every comparison in significance.csv."
    return tag("footer", tag("p", f"{said} Run {run_id}."))
