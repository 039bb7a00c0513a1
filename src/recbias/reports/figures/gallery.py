"""All figures of a run, and why a figure is not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pandas as pd

from recbias.core.errors import MissingEvidence
from recbias.reports.comparisons import Comparisons, comparisons
from recbias.reports.definitions import accuracy_metric, definitions, popularity_metric
from recbias.reports.figures.agreement import agreement
from recbias.reports.figures.exposure import exposure, recommended
from recbias.reports.figures.matrix import matrix
from recbias.reports.figures.names import FileNames
from recbias.reports.figures.popularity import popularity
from recbias.reports.figures.scatter import OTHERS, scatter
from recbias.reports.figures.svg import Figure
from recbias.reports.figures.tail import tail
from recbias.reports.frame import RunTables
from recbias.reports.pictures.album import album
from recbias.reports.pictures.picture import Picture
from recbias.reports.slices import ALL, datasets

Shown: TypeAlias = Figure | Picture


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
    single = [each for each in datasets(run) if each != ALL]
    lists = recommended(run)
    for dataset in single:
        behind = f"-{dataset}" if len(single) > 1 else ""
        try:
            figure = scatter(run, dataset, name=names.free(f"accuracy-popularity{behind}"))
            overview.append((dataset, figure))
        except MissingEvidence as error:
            skipped.append(f"Accuracy against popularity bias: {error.found}; {error.remedy}.")
        for stem, figure in _others(run, dataset, lists):
            overview.append((dataset, replace(figure, name=names.free(f"{stem}{behind}"))))
    if not any(figure.name.startswith("long-tail") for _, figure in overview):
        skipped.append("Long tail of recommended items: the run holds no lists.")
    drawn, missing = album(run, names)
    overview += drawn
    skipped = [*(skipped if _of_lists(run) else []), *missing]
    found = [each for each in comparisons(run) if each.of_models and not each.part]
    matrices = tuple((each, matrix(each, name=names.free(_stem(each, found)))) for each in found)
    return Gallery(tuple(overview), matrices, tuple(dict.fromkeys(skipped)))


def _of_lists(run: RunTables) -> bool:
    """Return whether a run asks how accurate or how popular lists are: others need no excuse."""
    known = definitions(run).values()
    return accuracy_metric(known) is not None or popularity_metric(known) is not None


def _others(run: RunTables, dataset: str, lists: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield the figures that a dataset has, each with its name."""
    for family in OTHERS:
        with contextlib.suppress(MissingEvidence):
            stem = f"accuracy-{family.bias}"
            yield stem, scatter(run, dataset, name=stem, family=family)
    shares = exposure(run, lists, dataset)
    if shares is not None:
        yield "long-tail", tail(run, shares, name="long-tail")
    for stem, draw in {"popularity": popularity, "metric-agreement": agreement}.items():
        figure = draw(run, dataset, name=stem)
        if figure is not None:
            yield stem, figure


def _stem(each: Comparisons, found: list[Comparisons]) -> str:
    parts = ["significance", each.title, each.part]
    if len({other.place[0] for other in found}) > 1:
        parts.append(each.place[0])
    if len({other.test for other in found if other.title == each.title}) > 1:
        parts.append(each.test)
    return "-".join(filter(None, parts))
