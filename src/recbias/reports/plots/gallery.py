"""All plots of a run, and the reasons why others are missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing.faults import DRAWING_FAULTS, describe_fault
from recbias.reports.plots.drawing.file_names import FileNames
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.exposure import compute_exposure, count_recommendations
from recbias.reports.plots.long_tail import draw_long_tail
from recbias.reports.plots.metric_agreement import draw_metric_agreement
from recbias.reports.plots.papers.associations import draw_associations
from recbias.reports.plots.papers.attribute_ranking import draw_attribute_ranking
from recbias.reports.plots.papers.group_means import draw_group_means
from recbias.reports.plots.papers.prices import draw_prices
from recbias.reports.plots.papers.projection import draw_projections
from recbias.reports.plots.papers.stereotypes import draw_stereotypes
from recbias.reports.plots.popularity_histogram import draw_popularity
from recbias.reports.plots.scatter import OTHER_BIASES, draw_scatter
from recbias.reports.plots.win_matrix import draw_win_matrix
from recbias.reports.views.comparisons import Comparisons, collect_comparisons
from recbias.reports.views.definitions import (
    collect_definitions,
    select_accuracy_metric,
    select_popularity_metric,
)
from recbias.reports.views.run_tables import RunTables

DrawPlots = Callable[[RunTables, str, rows.NameFile], Iterator[Plot]]

UNIT_PLOTS: Mapping[str, DrawPlots] = {
    "Stereotype exposure": draw_stereotypes,
    "Latent space": draw_projections,
}
"""Plots of the users and items of one dataset."""

METRIC_PLOTS: Mapping[str, DrawPlots] = {
    "Means by group": draw_group_means,
    "Price levels by label": draw_prices,
    "Averages by label": draw_attribute_ranking,
    "Association with two labels": draw_associations,
}
"""Plots of ``metrics.csv``, of the mean over all datasets too."""

MOST_UNIT_DATASETS = 6
"""Datasets that get unit plots."""

_SCATTER = "Accuracy against popularity bias"


@dataclass(frozen=True, eq=False)
class Gallery:
    """The plots of a run.

    Args:
        overview: All plots but the matrices, each with its dataset.
        matrices: A win matrix for each family of comparisons between models; comparisons by label
            and attribute value have a table only.
        skipped: A sentence for each plot that is missing.
    """

    overview: tuple[tuple[str, Plot], ...]
    matrices: tuple[tuple[Comparisons, Plot], ...]
    skipped: tuple[str, ...]

    def plots(self) -> list[Plot]:
        """Return every plot."""
        return [plot for _, plot in (*self.overview, *self.matrices)]


@dataclass(frozen=True, eq=False)
class _Album:
    """Plots with their datasets, reasons why others are missing, and plots that failed."""

    plots: list[tuple[str, Plot]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(
        self,
        title: str,
        dataset: str,
        draw: Callable[[], Iterable[Plot]],
        *,
        required: bool = True,
    ) -> None:
        """Draw plots; one that fails is recorded, and one that is missing if it is required."""
        try:
            self.plots.extend((dataset, plot) for plot in draw())
        except MissingEvidence as error:
            if required:
                reason = "; ".join(filter(None, [error.message, error.remedy]))
                self.missing.append(f"{title}: {reason}.")
        except DRAWING_FAULTS as error:
            self.faults.append(describe_fault(title, error))


def draw_gallery(run: RunTables) -> Gallery:
    """Return the plots of a run."""
    names = FileNames()
    overview = _draw_overview(run, names)
    album = _draw_paper_plots(run, names)
    missing = overview.missing if _measures_lists(run) else []
    matrices, matrix_faults = _draw_matrices(run, names)
    skipped = [*missing, *album.missing, *overview.faults, *album.faults, *matrix_faults]
    return Gallery(
        overview=(*overview.plots, *album.plots),
        matrices=tuple(matrices),
        skipped=tuple(dict.fromkeys(skipped)),
    )


def _draw_overview(run: RunTables, names: FileNames) -> _Album:
    """Return the plots of accuracy and popularity."""
    album = _Album()
    datasets = rows.list_single_datasets(run)
    counts = count_recommendations(run)
    for dataset in datasets:
        suffix = f"-{dataset}" if len(datasets) > 1 else ""
        for title, stem, draw in _list_overview(run, dataset, counts):
            draw_named = partial(_draw_named, draw, f"{stem}{suffix}", names)
            album.add(title, dataset, draw_named, required=title == _SCATTER)
    if not any(plot.name.startswith("long-tail") for _, plot in album.plots):
        album.missing.append("Long tail of recommended items: the run holds no lists.")
    return album


def _list_overview(
    run: RunTables, dataset: str, counts: pd.DataFrame
) -> Iterator[tuple[str, str, Callable[..., Plot | None]]]:
    """Yield title, file name and drawing function of each overview plot of a dataset."""
    yield _SCATTER, "accuracy-popularity", partial(draw_scatter, run, dataset)
    for family in OTHER_BIASES:
        title = f"Accuracy against {family.bias}"
        yield title, f"accuracy-{family.bias}", partial(draw_scatter, run, dataset, family=family)
    yield "Long tail", "long-tail", partial(_draw_tail, run, dataset, counts)
    yield "Popularity", "popularity", partial(draw_popularity, run, dataset)
    yield "Metric agreement", "metric-agreement", partial(draw_metric_agreement, run, dataset)


def _draw_named(draw: Callable[..., Plot | None], stem: str, names: FileNames) -> Iterator[Plot]:
    plot = draw(name=stem)
    if plot is not None:
        yield replace(plot, name=names.free(stem))


def _draw_tail(run: RunTables, dataset: str, counts: pd.DataFrame, *, name: str) -> Plot | None:
    exposure = compute_exposure(run, counts, dataset)
    return None if exposure is None else draw_long_tail(run, exposure, name=name)


def _draw_paper_plots(run: RunTables, names: FileNames) -> _Album:
    """Return the plots that papers show."""
    album = _Album()
    single = rows.list_single_datasets(run)
    name_file: rows.NameFile
    for plots, datasets in (
        (UNIT_PLOTS, single[:MOST_UNIT_DATASETS]),
        (METRIC_PLOTS, rows.list_plotted_datasets(run)),
    ):
        for (title, draw), dataset in itertools.product(plots.items(), datasets):
            name_file = partial(_name_file, names, dataset if len(single) > 1 else "")
            album.add(title, dataset, partial(draw, run, dataset, name_file))
    return album


def _name_file(names: FileNames, suffix: str, text: str) -> str:
    return names.free(f"{text}-{suffix}")


def _draw_matrices(
    run: RunTables, names: FileNames
) -> tuple[list[tuple[Comparisons, Plot]], list[str]]:
    """Return the win matrices, and the faults of those that failed."""
    families = [
        family for family in collect_comparisons(run) if family.compares_models and not family.part
    ]
    matrices, faults = [], []
    for family in families:
        name = names.free(_name_matrix(family, families))
        try:
            matrices.append((family, draw_win_matrix(family, name=name)))
        except DRAWING_FAULTS as error:
            faults.append(describe_fault(family.title, error))
    return matrices, faults


def _name_matrix(family: Comparisons, families: list[Comparisons]) -> str:
    parts = ["significance", family.title]
    if len({other.place[0] for other in families}) > 1:
        parts.append(family.place[0])
    if len({other.test for other in families if other.title == family.title}) > 1:
        parts.append(family.test)
    return "-".join(parts)


def _measures_lists(run: RunTables) -> bool:
    """Return whether a run has a metric of accuracy or popularity, so that it needs lists."""
    metrics = collect_definitions(run).values()
    return (
        select_accuracy_metric(metrics) is not None
        or select_popularity_metric(metrics) is not None
    )
