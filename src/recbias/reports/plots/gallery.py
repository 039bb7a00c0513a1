"""All plots of a run, and the reasons why others are missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.reports.plots import plot_rows as rows
from recbias.reports.plots.drawing.svg import FileNames, Plot
from recbias.reports.plots.fold_values import draw_fold_values
from recbias.reports.plots.learning_curves import draw_learning_curves
from recbias.reports.plots.long_tail import compute_exposure, count_recommendations, draw_long_tail
from recbias.reports.plots.metric_agreement import draw_metric_agreement
from recbias.reports.plots.papers.associations import draw_associations
from recbias.reports.plots.papers.attribute_ranking import draw_attribute_ranking
from recbias.reports.plots.papers.detectors import draw_detectors
from recbias.reports.plots.papers.group_means import draw_group_means
from recbias.reports.plots.papers.prices import draw_prices
from recbias.reports.plots.papers.projection import draw_projections
from recbias.reports.plots.papers.stereotypes import draw_stereotypes
from recbias.reports.plots.papers.word_counts import draw_word_counts
from recbias.reports.plots.popularity_histogram import draw_popularity
from recbias.reports.plots.round_curves import draw_round_curves
from recbias.reports.plots.running_means import draw_running_means
from recbias.reports.plots.scatter import OTHER_BIASES, draw_scatter
from recbias.reports.plots.setting_curves import draw_setting_curves
from recbias.reports.plots.tradeoff_curves import draw_tradeoff_curves
from recbias.reports.plots.win_matrix import draw_win_matrix
from recbias.reports.views.comparisons import Comparisons, collect_comparisons
from recbias.reports.views.definitions import (
    collect_definitions,
    select_accuracy_metric,
    select_popularity_metric,
)
from recbias.reports.views.headline import list_single_datasets
from recbias.reports.views.run_tables import RunTables

Subject = TypeVar("Subject")
DrawPlots = Callable[[RunTables, str, rows.NameFile], Iterator[Plot]]

UNIT_PLOTS: Mapping[str, DrawPlots] = {
    "Stereotype exposure": draw_stereotypes,
    "Exposure by detector": draw_detectors,
    "Latent space": draw_projections,
    "Values by fold": draw_fold_values,
    "Running means": draw_running_means,
    "Learning curves": draw_learning_curves,
    "Values over rounds of feedback": draw_round_curves,
}
"""Plots of the users, items and trainings of one dataset."""

METRIC_PLOTS: Mapping[str, DrawPlots] = {
    "Means by group": draw_group_means,
    "Price levels by label": draw_prices,
    "Words in recommended names": draw_word_counts,
    "Averages by label": draw_attribute_ranking,
    "Association with two labels": draw_associations,
    "Metrics over settings": draw_setting_curves,
    "Accuracy against bias by re-ranking": draw_tradeoff_curves,
}
"""Plots of ``metrics.csv``, of the mean over all datasets too."""

MOST_UNIT_DATASETS = 6
"""Datasets that get unit plots."""

_SCATTER = "Accuracy against popularity bias"

DRAWING_FAULTS: tuple[type[Exception], ...] = (
    *(ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(MemoryError, OSError),
)
"""Exceptions that an unexpected value can raise in a plot; they cost the run nothing else."""


def describe_fault(title: str, error: Exception) -> str:
    """Return the sentence that says why a plot is missing.

    >>> describe_fault("Long tail", ValueError("no ticks"))
    'Long tail: the plot failed (ValueError: no ticks).'
    """
    reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
    return f"{title}: the plot failed ({reason})."


@dataclass(frozen=True, eq=False)
class Gallery:
    """The plots of a run.

    Those of the overview have their datasets. There is a matrix for each family of comparisons
    between models, not for comparisons by label and attribute value; ``skipped`` has a sentence
    for each plot that is missing.
    """

    overview: tuple[tuple[str, Plot], ...]
    matrices: tuple[tuple[Comparisons, Plot], ...]
    skipped: tuple[str, ...]

    def plots(self) -> list[Plot]:
        """Return every plot."""
        return [plot for _, plot in (*self.overview, *self.matrices)]


@dataclass(frozen=True, eq=False)
class _Album(Generic[Subject]):
    """Plots with what they show, reasons why others are missing, and plots that failed."""

    plots: list[tuple[Subject, Plot]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add(
        self,
        title: str,
        subject: Subject,
        draw: Callable[[], Iterable[Plot]],
        *,
        required: bool = True,
    ) -> None:
        """Draw plots; one that fails is recorded, and one that is missing if it is required."""
        try:
            self.plots.extend((subject, plot) for plot in draw())
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
    matrices = _draw_matrices(run, names)
    metrics = collect_definitions(run).values()
    needs_lists = select_accuracy_metric(metrics) or select_popularity_metric(metrics)
    missing = overview.missing if needs_lists else []
    skipped = [*missing, *album.missing, *overview.faults, *album.faults, *matrices.faults]
    return Gallery(
        overview=(*overview.plots, *album.plots),
        matrices=tuple(matrices.plots),
        skipped=tuple(dict.fromkeys(skipped)),
    )


def _draw_overview(run: RunTables, names: FileNames) -> _Album[str]:
    """Return the plots of accuracy and popularity."""
    album = _Album[str]()
    datasets = list_single_datasets(run)
    counts = count_recommendations(run)
    plots: list[tuple[str, str, Callable[..., Plot | None]]] = [
        (_SCATTER, "accuracy-popularity", draw_scatter),
        *(
            (f"Accuracy against {family.bias}", f"accuracy-{family.bias}", draw)
            for family in OTHER_BIASES
            for draw in [partial(draw_scatter, family=family)]
        ),
        ("Long tail", "long-tail", partial(_draw_tail, counts=counts)),
        ("Popularity", "popularity", draw_popularity),
        ("Metric agreement", "metric-agreement", draw_metric_agreement),
    ]
    for dataset, (title, stem, draw) in itertools.product(datasets, plots):
        file = f"{stem}-{dataset}" if len(datasets) > 1 else stem
        draw_named = partial(_draw_named, partial(draw, run, dataset), file, names)
        album.add(title, dataset, draw_named, required=title == _SCATTER)
    if not any(plot.name.startswith("long-tail") for _, plot in album.plots):
        album.missing.append("Long tail of recommended items: the run holds no lists.")
    return album


def _draw_named(draw: Callable[..., Plot | None], stem: str, names: FileNames) -> Iterator[Plot]:
    if (plot := draw(name=stem)) is not None:
        yield replace(plot, name=names.free(stem))


def _draw_tail(run: RunTables, dataset: str, *, counts: pd.DataFrame, name: str) -> Plot | None:
    exposure = compute_exposure(run, counts, dataset)
    return None if exposure is None else draw_long_tail(run, exposure, name=name)


def _draw_paper_plots(run: RunTables, names: FileNames) -> _Album[str]:
    """Return the plots that papers show."""
    album = _Album[str]()
    single = list_single_datasets(run)
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


def _draw_matrices(run: RunTables, names: FileNames) -> _Album[Comparisons]:
    """Return the win matrices."""
    album = _Album[Comparisons]()
    families = [
        family for family in collect_comparisons(run) if family.compares_models and not family.part
    ]
    several = len({family.place[0] for family in families}) > 1
    for family in families:
        tests = {rival.test for rival in families if rival.title == family.title}
        parts = [family.place[0] if several else "", family.test if len(tests) > 1 else ""]
        stem = "-".join(["significance", family.title, *filter(None, parts)])
        draw_named = partial(_draw_named, partial(draw_win_matrix, family), stem, names)
        album.add(family.title, family, draw_named)
    return album
