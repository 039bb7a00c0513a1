"""The searches of a run with their plots."""

from __future__ import annotations

from dataclasses import dataclass

from recbias.reports.plots.drawing.faults import DRAWING_FAULTS
from recbias.reports.plots.drawing.file_names import FileNames
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.search_progress import draw_search_progress
from recbias.reports.plots.setting_importance import draw_setting_importance
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.trials import Search, collect_searches

_DRAWERS = {"search": draw_search_progress, "importance": draw_setting_importance}


@dataclass(frozen=True, eq=False)
class SearchPlots:
    """A search and its plots.

    Args:
        search: The search.
        plots: Its progress and the importance of its settings, those that can be drawn.
    """

    search: Search
    plots: tuple[Plot, ...]


def draw_search_plots(run: RunTables) -> tuple[SearchPlots, ...]:
    """Return the searches of a run in its order."""
    names = FileNames()
    return tuple(_draw_plots(search, names) for search in collect_searches(run))


def _draw_plots(search: Search, names: FileNames) -> SearchPlots:
    plots = []
    for stem, draw in _DRAWERS.items():
        try:
            plot = draw(search, name=names.free(f"{stem}-{search.title}"))
        except DRAWING_FAULTS:
            continue
        if plot is not None:
            plots.append(plot)
    return SearchPlots(search, tuple(plots))
