"""All plots of a run, and the reasons why others are missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.reports import plots as rows
from recbias.reports import views
from recbias.reports.plots_models import (
    OTHER_BIASES,
    draw_scatter,
    draw_setting_curves,
    draw_tradeoff_curves,
)
from recbias.reports.plots_prompts import (
    draw_associations,
    draw_attribute_ranking,
    draw_group_means,
    draw_hit_shares,
    draw_prices,
    draw_word_counts,
)
from recbias.reports.plots_units import (
    compute_exposure,
    count_recommendations,
    draw_learning_curves,
    draw_long_tail,
    draw_popularity_means,
    draw_projections,
    draw_running_means,
    draw_stereotypes,
)
from recbias.reports.run import RunTables
from recbias.reports.svg import FileNames, Plot
from recbias.reports.turns import draw_assumptions
from recbias.reports.wording import Safe

_DrawPlots = Callable[[RunTables, str, rows.NameFile], Iterator[Plot]]

# plots of the users, items and trainings of one dataset
_UNIT_PLOTS: Mapping[str, _DrawPlots] = {
    "Stereotype exposure": draw_stereotypes,
    "Latent space": draw_projections,
    "Running means": draw_running_means,
    "Learning curves": draw_learning_curves,
}

METRIC_PLOTS: Mapping[str, _DrawPlots] = {
    "Means by group": draw_group_means,
    "Price levels by label": draw_prices,
    "Words in recommended names": draw_word_counts,
    "Averages by label": draw_attribute_ranking,
    "Lists with a stereotype": draw_hit_shares,
    "Association with two labels": draw_associations,
    "Metrics over settings": draw_setting_curves,
    "What a log assumes": draw_assumptions,
    "Accuracy against bias by re-ranking": draw_tradeoff_curves,
}
"""Plots of ``metrics.csv``, of the mean over all datasets too."""

_MOST_UNIT_DATASETS = 6  # datasets that get unit plots

_SCATTER = "Accuracy against popularity bias"

# exceptions that an unexpected value can raise in a plot; they cost the run nothing else
_DRAWING_FAULTS: tuple[type[Exception], ...] = (
    *(ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(MemoryError, OSError),
)


def _describe_fault(title: str, error: Exception) -> str:
    """Return the sentence that says why a plot is missing.

    >>> _describe_fault("Long tail", ValueError("no ticks"))
    'Long tail: the plot failed (ValueError: no ticks).'
    """
    reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
    return f"{title}: the plot failed ({reason})."


@dataclass(frozen=True, eq=False)
class Gallery:
    """The plots of a run with their datasets, and a sentence for each plot that is missing."""

    overview: tuple[tuple[str, Plot], ...]
    skipped: tuple[str, ...]

    def plots(self) -> list[Plot]:
        """Return every plot."""
        return [plot for _, plot in self.overview]

    def dump(self) -> dict[str, Any]:
        """Return what ``load_gallery`` reads."""
        overview = [(dataset, vars(plot)) for dataset, plot in self.overview]
        return {"overview": overview, "skipped": self.skipped}


@dataclass(eq=False)
class _Draughts:
    """File names in use, and why plots are missing."""

    names: FileNames = field(default_factory=FileNames)
    missing: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def draw(
        self, title: str, draw: Callable[[], Iterable[Plot]], *, required: bool = True
    ) -> Iterator[Plot]:
        """Yield plots; one that fails is recorded, and one that is missing if it is required."""
        try:
            yield from draw()
        except MissingEvidence as error:
            if required:
                reason = "; ".join(filter(None, [error.message, error.remedy]))
                self.missing.append(f"{title}: {reason}.")
        except _DRAWING_FAULTS as error:
            self.faults.append(_describe_fault(title, error))

    def draw_one(
        self, title: str, draw: Callable[..., Plot | None], stem: str, *, required: bool = False
    ) -> Iterator[Plot]:
        """Yield a plot under a free name, if there is one."""

        def draw_named() -> Iterator[Plot]:
            if (plot := draw(name=stem)) is not None:
                yield replace(plot, name=self.names.free(stem))

        return self.draw(title, draw_named, required=required)


def draw_gallery(run: RunTables) -> Gallery:
    """Return the plots of a run."""
    draughts = _Draughts()
    overview = _draw_overview(run, draughts)
    metrics = views.collect_definitions(run).values()
    if not (views.select_accuracy_metric(metrics) or views.select_popularity_metric(metrics)):
        draughts.missing.clear()  # a run without lists
    overview += _draw_paper_plots(run, draughts)
    skipped = dict.fromkeys([*draughts.missing, *draughts.faults])
    return Gallery(tuple(overview), tuple(skipped))


def load_gallery(stored: Mapping[str, Any]) -> Gallery:
    """Return the plots of a run, from what ``dump`` returned for one with the same tables."""
    plots = [
        (dataset, Plot(**{**plot, "body": Safe(plot["body"])}))
        for dataset, plot in stored["overview"]
    ]
    return Gallery(tuple(plots), tuple(stored["skipped"]))


def _draw_overview(run: RunTables, draughts: _Draughts) -> list[tuple[str, Plot]]:
    """Return the plots of accuracy and popularity."""
    datasets = views.list_single_datasets(run)
    counts = count_recommendations(run)
    kinds: list[tuple[str, str, Callable[..., Plot | None]]] = [
        (_SCATTER, "accuracy-popularity", draw_scatter),
        *(
            (f"Accuracy against {family.bias}", f"accuracy-{family.bias}", draw)
            for family in OTHER_BIASES
            for draw in [partial(draw_scatter, family=family)]
        ),
        ("Long tail", "long-tail", partial(_draw_tail, counts=counts)),
        ("Mean popularity", "popularity-means", draw_popularity_means),
    ]
    plots = []
    for dataset, (title, stem, draw) in itertools.product(datasets, kinds):
        file = f"{stem}-{dataset}" if len(datasets) > 1 else stem
        drawn = draughts.draw_one(
            title, partial(draw, run, dataset), file, required=title == _SCATTER
        )
        plots += [(dataset, plot) for plot in drawn]
    if not any(plot.name.startswith("long-tail") for _, plot in plots):
        draughts.missing.append("Long tail of recommended items: the run holds no lists.")
    return plots


def _draw_tail(run: RunTables, dataset: str, *, counts: pd.DataFrame, name: str) -> Plot | None:
    exposure = compute_exposure(run, counts, dataset)
    return None if exposure is None else draw_long_tail(run, exposure, name=name)


def _draw_paper_plots(run: RunTables, draughts: _Draughts) -> Iterator[tuple[str, Plot]]:
    """Yield the plots that papers show."""
    single = views.list_single_datasets(run)
    for plots, datasets in (
        (_UNIT_PLOTS, single[:_MOST_UNIT_DATASETS]),
        (METRIC_PLOTS, rows.list_plotted_datasets(run)),
    ):
        for (title, draw), dataset in itertools.product(plots.items(), datasets):
            suffix = dataset if len(single) > 1 else ""
            name_file = partial(_name_file, draughts.names, suffix)
            for plot in draughts.draw(title, partial(draw, run, dataset, name_file)):
                yield dataset, plot


def _name_file(names: FileNames, suffix: str, text: str) -> str:
    return names.free(f"{text}-{suffix}")
