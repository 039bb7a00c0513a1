"""All plots of a run, with those of its searches, and the reasons why others are missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.core.measures import to_loss
from recbias.reports import plots as rows
from recbias.reports import svg, views
from recbias.reports.llm import Search, Trial, collect_searches
from recbias.reports.plots_models import (
    OTHER_BIASES,
    draw_metric_agreement,
    draw_scatter,
    draw_setting_curves,
    draw_tradeoff_curves,
)
from recbias.reports.plots_prompts import (
    Forest,
    Mark,
    Panel,
    Row,
    draw_associations,
    draw_attribute_ranking,
    draw_forest,
    draw_group_means,
    draw_hit_shares,
    draw_prices,
    draw_word_counts,
)
from recbias.reports.plots_units import (
    compute_exposure,
    count_recommendations,
    draw_fold_values,
    draw_learning_curves,
    draw_long_tail,
    draw_popularity_means,
    draw_projections,
    draw_round_curves,
    draw_running_means,
    draw_stereotypes,
)
from recbias.reports.run import RunTables
from recbias.reports.svg import FileNames, Plot, Scale
from recbias.reports.wording import Safe, format_value, join

_DrawPlots = Callable[[RunTables, str, rows.NameFile], Iterator[Plot]]

# plots of the users, items and trainings of one dataset
_UNIT_PLOTS: Mapping[str, _DrawPlots] = {
    "Stereotype exposure": draw_stereotypes,
    "Latent space": draw_projections,
    "Values by fold": draw_fold_values,
    "Running means": draw_running_means,
    "Learning curves": draw_learning_curves,
    "Values over rounds of feedback": draw_round_curves,
}

METRIC_PLOTS: Mapping[str, _DrawPlots] = {
    "Means by group": draw_group_means,
    "Price levels by label": draw_prices,
    "Words in recommended names": draw_word_counts,
    "Averages by label": draw_attribute_ranking,
    "Lists with a stereotype": draw_hit_shares,
    "Association with two labels": draw_associations,
    "Metrics over settings": draw_setting_curves,
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
        ("Metric agreement", "metric-agreement", draw_metric_agreement),
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


_LEFT, _TOP, _RIGHT, _BOTTOM = 58.0, 34.0, 466.0, 262.0
_STRIP = 18.0  # height of a line of trials without a value

_COLOURS = {"pruned": "c7", "failed": "c1", "excluded": "c4"}


@dataclass(frozen=True, eq=False)
class _SearchPlots:
    """A search and its plots: its progress and the importance of its settings, if drawable."""

    search: Search
    plots: tuple[svg.Plot, ...]


def draw_search_plots(run: RunTables) -> tuple[_SearchPlots, ...]:
    """Return the searches of a run in its order."""
    names = svg.FileNames()
    return tuple(_draw_plots(search, names) for search in collect_searches(run))


def _draw_plots(search: Search, names: svg.FileNames) -> _SearchPlots:
    plots = []
    for stem, draw in (("search", draw_search_progress), ("importance", draw_setting_importance)):
        try:
            plot = draw(search, name=names.free(f"{stem}-{search.title}"))
        except _DRAWING_FAULTS:
            continue
        if plot is not None:
            plots.append(plot)
    return _SearchPlots(search, tuple(plots))


def draw_search_progress(search: Search, *, name: str) -> svg.Plot | None:
    """Return the plot of every trial, and of the best value so far.

    None if neither direction of the metric is better.
    """
    trials = _list_drawable(search)
    if search.direction == "none" or not trials:
        return None
    axes = svg.Axes(
        Scale(0.5, len(search.trials) + 0.5, _LEFT, _RIGHT),
        Scale(*svg.pad_range(trial.value for trial in trials), _BOTTOM, _TOP),
    )
    states = [state for state in _COLOURS if search.count(state)]
    bottom = _BOTTOM + 8 + _STRIP * len(states)
    ticks = [tick for tick in svg.choose_ticks(1.0, len(search.trials), 8) if tick.is_integer()]
    points = {trial.number: axes.at(trial.number, trial.value) for trial in trials}
    steps = _list_steps(search, points, axes.x.at(len(search.trials)))
    sentences = [
        "Each point is a trial; the line is the best so far, the large point the best.",
        f"Trials that were {' or '.join(states)} are marked below." if states else "",
    ]
    return svg.Plot(
        name=name,
        title=f"Progress of the search: {search.title}",
        caption=" ".join(filter(None, sentences)),
        height=bottom + 48,
        body=join(
            axes.draw(ticks, bottom=bottom),
            *(
                _draw_strip(search, state, _BOTTOM + 18 + _STRIP * line, axes.x)
                for line, state in enumerate(states)
            ),
            svg.draw_polyline(steps, "curve c0"),
            *_draw_best_label(search, points, steps),
            *(_draw_trial(search, trial, points[trial.number]) for trial in trials),
            svg.draw_title((4, 16), search.metric, views.DIRECTION_LABELS[search.direction]),
            svg.draw_title((_RIGHT, bottom + 40), "Trial", class_="end"),
        ),
    )


def list_improvements(search: Search) -> list[Trial]:
    """Return the trials that were better than all before them, in order."""
    improvements, best = [], math.inf
    for trial in _list_drawable(search):
        if (loss := to_loss(trial.value, search.direction)) < best:
            improvements.append(trial)
            best = loss
    return improvements


def _list_drawable(search: Search) -> list[Trial]:
    return [trial for trial in search.done if svg.fits_axis(trial.value)]


def _list_steps(search: Search, points: dict[int, svg.Point], end: float) -> list[svg.Point]:
    """Return the corners of the line of the best value so far, up to the last trial."""
    steps: list[svg.Point] = []
    for trial in list_improvements(search):
        x, y = points[trial.number]
        steps += [(x, steps[-1][1]), (x, y)] if steps else [(x, y)]
    return [*steps, (end, steps[-1][1])]


def _draw_trial(search: Search, trial: Trial, point: svg.Point) -> Safe:
    title = f"trial {trial.number}: {format_value(trial.value, search.places)}"
    radius, class_ = (6, "dot c2") if trial.number == search.best else (4, "dot c0")
    return svg.draw_circle(point, radius, class_, title)


def _draw_best_label(
    search: Search, points: dict[int, svg.Point], steps: Sequence[svg.Point]
) -> list[Safe]:
    """Return the best value beside its point, where it covers the other points least."""
    if search.best not in points:
        return []
    label = f"trial {search.best}: {format_value(search.chosen.value, search.places)}"
    obstacles = [*points.values(), *svg.interpolate_points(steps)]
    frame = (_LEFT + 4, _TOP - 8, _RIGHT, _BOTTOM)
    return svg.draw_labels(
        [points[search.best]], [label], frame, ["halo c2"], gap=11, obstacles=obstacles
    )


def _draw_strip(search: Search, state: str, y: float, x_scale: Scale) -> Safe:
    """Return a line of marks: the trials that ended in a state without a value."""
    marks = []
    for trial in search.trials:
        if trial.state == state:
            corner = x_scale.at(trial.number) - 2, y - 10
            title = f"trial {trial.number}: {state}"
            marks.append(svg.draw_rectangle(corner, (4, 10), f"dot {_COLOURS[state]}", title))
    return join(svg.draw_text((_LEFT - 7, y), state, "tick end"), *marks)


def draw_setting_importance(search: Search, *, name: str) -> svg.Plot | None:
    """Return the share of the variation that each setting explains, the largest first.

    None if no importance is known.
    """
    shares = {key: share for key, share in search.importances.items() if svg.fits_axis(share)}
    if not shares:
        return None
    n_pruned = search.count("pruned")
    target = "the best nDCG@10 of an epoch" if n_pruned else search.metric
    lines = []
    for key in sorted(shares, key=lambda key: -shares[key]):
        text, value = format_value(shares[key], 2), svg.Interval(shares[key], math.nan, math.nan)
        lines.append(Row(key, (Mark(value, 0, f"{key}: {text}"),), text))
    return draw_forest(
        Forest(
            (Panel("", tuple(lines)),), ("",), "Share of what the settings explain", neutral=0.0
        ),
        name=name,
        title=f"Which settings mattered: {search.title}",
        caption=(
            f"The share of the variance of {target} over {len(search.done) + n_pruned:,} trials "
            "that each setting explains by itself, scaled to sum to 1: functional ANOVA of a "
            "random forest. With few trials the shares are rough."
        ),
    )
