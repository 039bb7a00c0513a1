"""Each search of a run with its figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from recbias.reports.plots.drawing.faults import draw_or_tell
from recbias.reports.plots.drawing.file_names import FileNames
from recbias.reports.plots.drawing.svg import Figure
from recbias.reports.plots.search_progress import progress
from recbias.reports.plots.setting_importance import importance
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.trials import Search, searches


@dataclass(frozen=True, eq=False)
class SearchFigures:
    """A search and its figures.

    Args:
        search: The search.
        figures: How it went, and which settings mattered, where that is known and can be drawn.
    """

    search: Search
    figures: tuple[Figure, ...]


def search_figures(run: RunTables) -> tuple[SearchFigures, ...]:
    """Return the searches of a run, in its order."""
    names = FileNames()
    return tuple(_drawn(each, names) for each in searches(run))


def _drawn(search: Search, names: FileNames) -> SearchFigures:
    figures: list[Figure] = []
    for stem, draw in {"search": progress, "importance": importance}.items():
        name = names.free(f"{stem}-{search.title}")
        figures += draw_or_tell(stem, partial(draw, search, name=name), [])
    return SearchFigures(search, tuple(figures))
