"""All pictures of a run; matplotlib is imported when the first is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from recbias.core.errors import MissingEvidence
from recbias.reports.plots.drawing.faults import DRAWING_FAULTS, describe_fault
from recbias.reports.plots.drawing.file_names import FileNames
from recbias.reports.plots.drawing.picture import Picture
from recbias.reports.plots.papers.associations import associations
from recbias.reports.plots.papers.attribute_ranking import ranking
from recbias.reports.plots.papers.group_means import gaps
from recbias.reports.plots.papers.plot_rows import Namer, shown_datasets, whole_datasets
from recbias.reports.plots.papers.prices import prices
from recbias.reports.plots.papers.projection import projection
from recbias.reports.plots.papers.stereotypes import stereotypes
from recbias.reports.views.run_tables import RunTables

Drawing = Callable[[RunTables, str, Namer], Iterator[Picture]]

OF_FIGURES: Mapping[str, Drawing] = {
    "Figures by group": gaps,
    "Price levels by label": prices,
    "Averages by label": ranking,
    "Association with two labels": associations,
}
"""What is drawn from ``metrics.csv``, over all datasets too."""

OF_UNITS: Mapping[str, Drawing] = {
    "Stereotype exposure": stereotypes,
    "Latent space": projection,
}
"""What is drawn from the users and items of one dataset."""

MOST_DATASETS = 6


def album(run: RunTables, names: FileNames) -> tuple[list[tuple[str, Picture]], list[str]]:
    """Return the pictures, each with its dataset, and why one that was asked for is not there.

    Args:
        run: The run.
        names: Names that are taken already.
    """
    found: list[tuple[str, Picture]] = []
    missing: list[str] = []
    single = whole_datasets(run)
    figures = [(*each, place) for each in OF_FIGURES.items() for place in shown_datasets(run)]
    units = [(*each, place) for each in OF_UNITS.items() for place in single[:MOST_DATASETS]]
    for what, draw, dataset in [*units, *figures]:
        name = _namer(names, dataset if len(single) > 1 else "")
        try:
            found.extend((dataset, picture) for picture in draw(run, dataset, name))
        except MissingEvidence as error:
            missing.append(f"{what}: {error.message}.")
        except DRAWING_FAULTS as error:
            missing.append(describe_fault(what, error))
    return found, missing


def _namer(names: FileNames, behind: str) -> Namer:
    def name(said: str) -> str:
        return names.free(f"{said}-{behind}")

    return name
