"""The searches of a run as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from recbias.reports.markup import Safe, join, one_line, tag
from recbias.reports.plots.search_plots import SearchPlots
from recbias.reports.views.trials import brief, overview, said, trials_table, untold
from recbias.reports.writers.html_parts import boxed, html_table, negative

LONG = 12
"""A table with more trials than this scrolls in its box."""


def searching(found: Sequence[SearchPlots]) -> Safe:
    """Return the table of the searches, then each with its figures and trials, folded."""
    table = html_table(overview([each.search for each in found]))
    return join(table, *(_folded(each, opened=at == 0) for at, each in enumerate(found)))


def _folded(each: SearchPlots, *, opened: bool) -> Safe:
    search = each.search
    drawn = [
        tag(
            "figure",
            tag("h3", one_line(figure.title)),
            boxed(figure.inline(), figure.title),
            tag("figcaption", negative(one_line(figure.caption))),
        )
        for figure in each.figures
    ]
    return tag(
        "details",
        tag("summary", one_line(f"{search.title}: {brief(search)}")),
        tag("p", negative(one_line(said(search))), class_="prose"),
        tag("div", *drawn, class_="figures") if drawn else "",
        tag("p", untold(search), class_="quiet") if untold(search) else "",
        html_table(trials_table(search), tall=len(search.trials) > LONG),
        open="" if opened else None,
    )
