"""All plots of a run, and the reasons why others are missing."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from recbias.core.errors import MissingEvidence
from recbias.reports import plots as rows
from recbias.reports import views
from recbias.reports.plots_models import (
    OTHER_BIASES,
    POPULARITY_BIAS,
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
    draw_long_tail,
    draw_popularity_means,
    draw_projections,
    draw_stereotypes,
)
from recbias.reports.run import RunTables
from recbias.reports.svg import FileNames, Plot, narrow
from recbias.reports.turns import draw_assumptions
from recbias.reports.wording import Safe

_DrawPlots = Callable[[RunTables, str, rows.NameFile], Iterator[Plot]]


def _draw_scatters(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[Plot]:
    """Yield accuracy against each bias that the run has a metric of."""
    for family in (POPULARITY_BIAS, *OTHER_BIASES):
        with contextlib.suppress(MissingEvidence):
            name = name_file(f"accuracy-{family.bias}")
            yield draw_scatter(run, dataset, name=name, family=family)


def _draw_tails(run: RunTables, dataset: str, name_file: rows.NameFile) -> Iterator[Plot]:
    exposure = compute_exposure(run, count_recommendations(run), dataset)
    if exposure is not None:
        yield draw_long_tail(run, exposure, name=name_file("long-tail"))


# plots of the models, and of the users and items, of one dataset
_OVERVIEW: Mapping[str, _DrawPlots] = {
    "Accuracy against bias": _draw_scatters,
    "Long tail": _draw_tails,
    "Mean popularity": draw_popularity_means,
}
_UNIT_PLOTS: Mapping[str, _DrawPlots] = {
    "Stereotype exposure": draw_stereotypes,
    "Latent space": draw_projections,
}

# plots of ``metrics.csv``, of the mean over all datasets too
_METRIC_PLOTS: Mapping[str, _DrawPlots] = {
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

_MOST_UNIT_DATASETS = 6  # datasets that get unit plots

# exceptions that an unexpected value can raise in a plot; they cost the run nothing else
_DRAWING_FAULTS: tuple[type[Exception], ...] = (
    *(ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(MemoryError, OSError),
)


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


def draw_gallery(run: RunTables) -> Gallery:
    """Return the plots of a run; one that fails or lacks values costs no other."""
    names, single = FileNames(), views.list_single_datasets(run)
    plots: list[tuple[str, Plot]] = []
    missing: list[str] = []
    for kinds, datasets in (
        (_OVERVIEW, single),
        (_UNIT_PLOTS, single[:_MOST_UNIT_DATASETS]),
        (_METRIC_PLOTS, rows.list_plotted_datasets(run)),
    ):
        for dataset, (title, draw) in itertools.product(datasets, kinds.items()):
            suffix = f"-{dataset}" if len(single) > 1 else ""
            try:
                drawn = draw(run, dataset, partial(_name_file, names, suffix))
                plots.extend((dataset, plot) for plot in drawn)  # those before a fault stay
            except MissingEvidence as error:
                missing.append(
                    f"{title}: {'; '.join(filter(None, (error.message, error.remedy)))}."
                )
            except _DRAWING_FAULTS as error:
                reason = f"{type(error).__name__}: {str(error)[:200]}".removesuffix(": ")
                missing.append(f"{title}: the plot failed ({reason}).")
    return Gallery(tuple(plots), tuple(dict.fromkeys(missing)))


def draw_narrow_groups(run: RunTables) -> dict[str, Plot]:
    """Return the plots of groups for the screen of a phone, by their names in the gallery."""
    names, drawn = FileNames(), dict[str, Plot]()
    several = len(views.list_single_datasets(run)) > 1
    with narrow():
        for dataset in rows.list_plotted_datasets(run):
            name_file = partial(_name_file, names, f"-{dataset}" if several else "")
            with contextlib.suppress(MissingEvidence, *_DRAWING_FAULTS):
                drawn |= {plot.name: plot for plot in draw_group_means(run, dataset, name_file)}
    return drawn


def load_gallery(stored: Mapping[str, Any]) -> Gallery:
    """Return the plots of a run, from what ``dump`` returned for one with the same tables."""
    plots = [
        (dataset, Plot(**{**plot, "body": Safe(plot["body"])}))
        for dataset, plot in stored["overview"]
    ]
    return Gallery(tuple(plots), tuple(stored["skipped"]))


def _name_file(names: FileNames, suffix: str, text: str) -> str:
    return names.free(f"{text}{suffix}")
