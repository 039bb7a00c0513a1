"""All figures of a run, and why a figure is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.album import album
from recbias.reports.plots.drawing.faults import draw_or_tell
from recbias.reports.plots.drawing.file_names import FileNames
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.drawing.svg import Figure
from recbias.reports.plots.exposure import exposure, recommended
from recbias.reports.plots.long_tail import tail
from recbias.reports.plots.metric_agreement import agreement
from recbias.reports.plots.popularity_histogram import popularity
from recbias.reports.plots.scatter import OTHERS, Family, scatter
from recbias.reports.plots.win_matrix import matrix
from recbias.reports.views.comparisons import Comparisons, comparisons
from recbias.reports.views.definitions import accuracy_metric, definitions, popularity_metric
from recbias.reports.views.headline import ALL, datasets
from recbias.reports.views.run_tables import RunTables

Shown: TypeAlias = Figure | Picture

_SCATTER = "Accuracy against popularity bias"


@dataclass(frozen=True, eq=False)
class Gallery:
    """The figures of a run.

    Args:
        overview: Scatters, long-tail curves and pictures, each with its dataset.
        matrices: A matrix for each family of comparisons between models; figures by label and
            value have a table only.
        skipped: Why a figure is not there, a sentence each.
    """

    overview: tuple[tuple[str, Shown], ...]
    matrices: tuple[tuple[Comparisons, Figure], ...]
    skipped: tuple[str, ...]

    def figures(self) -> list[Shown]:
        """Return every figure."""
        found = [figure for _, figure in self.overview]
        return [*found, *(figure for _, figure in self.matrices)]

    def pictures(self) -> list[Picture]:
        """Return the figures that can be had for print too."""
        return [each for _, each in self.overview if isinstance(each, Picture)]


def gallery(run: RunTables) -> Gallery:
    """Return the figures of a run."""
    names = FileNames()
    overview: list[tuple[str, Shown]] = []
    skipped: list[str] = []
    faulty: list[str] = []
    draw: Callable[[], Figure | None]
    single = [each for each in datasets(run) if each != ALL]
    lists = recommended(run)
    for dataset in single:
        behind = f"-{dataset}" if len(single) > 1 else ""
        try:
            name = names.free(f"accuracy-popularity{behind}")
            draw = partial(scatter, run, dataset, name=name)
            overview += [(dataset, each) for each in draw_or_tell(_SCATTER, draw, faulty)]
        except MissingEvidence as error:
            skipped.append(f"{_SCATTER}: {error.message}; {error.remedy}.")
        for stem, draw in _others(run, dataset, lists).items():
            for figure in draw_or_tell(stem, draw, faulty):
                overview.append((dataset, replace(figure, name=names.free(f"{stem}{behind}"))))
    if not any(figure.name.startswith("long-tail") for _, figure in overview):
        skipped.append("Long tail of recommended items: the run holds no lists.")
    drawn, missing = album(run, names)
    overview += drawn
    skipped = [*(skipped if _of_lists(run) else []), *missing]
    found = [each for each in comparisons(run) if each.of_models and not each.part]
    matrices: list[tuple[Comparisons, Figure]] = []
    for each in found:
        draw = partial(matrix, each, name=names.free(_stem(each, found)))
        matrices += [(each, figure) for figure in draw_or_tell(each.title, draw, faulty)]
    return Gallery(tuple(overview), tuple(matrices), tuple(dict.fromkeys([*skipped, *faulty])))


def _of_lists(run: RunTables) -> bool:
    """Return whether a run asks how accurate or how popular lists are: others need no excuse."""
    known = definitions(run).values()
    return accuracy_metric(known) is not None or popularity_metric(known) is not None


def _others(
    run: RunTables, dataset: str, lists: pd.DataFrame
) -> dict[str, Callable[[], Figure | None]]:
    """Return what draws the other figures of a dataset, by their names."""
    scatters = {
        f"accuracy-{family.bias}": partial(_draw_scatter, run, dataset, family)
        for family in OTHERS
    }
    return {
        **scatters,
        "long-tail": partial(_draw_tail, run, dataset, lists),
        "popularity": partial(popularity, run, dataset, name="popularity"),
        "metric-agreement": partial(agreement, run, dataset, name="metric-agreement"),
    }


def _draw_scatter(run: RunTables, dataset: str, family: Family) -> Figure | None:
    try:
        return scatter(run, dataset, name=f"accuracy-{family.bias}", family=family)
    except MissingEvidence:
        return None


def _draw_tail(run: RunTables, dataset: str, lists: pd.DataFrame) -> Figure | None:
    shares = exposure(run, lists, dataset)
    return None if shares is None else tail(run, shares, name="long-tail")


def _stem(each: Comparisons, found: list[Comparisons]) -> str:
    parts = ["significance", each.title, each.part]
    if len({other.place[0] for other in found}) > 1:
        parts.append(each.place[0])
    if len({other.test for other in found if other.title == each.title}) > 1:
        parts.append(each.test)
    return "-".join(filter(None, parts))
