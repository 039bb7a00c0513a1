"""All figures of a run, and why a figure is not there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from recbias.core.errors import MissingEvidence
from recbias.reports.comparisons import Comparisons, comparisons
from recbias.reports.figures.exposure import exposure, recommended
from recbias.reports.figures.matrix import matrix
from recbias.reports.figures.scatter import scatter
from recbias.reports.figures.svg import Figure
from recbias.reports.figures.tail import tail
from recbias.reports.frame import RunTables
from recbias.reports.slices import ALL, datasets


@dataclass(frozen=True, eq=False)
class Gallery:
    """The figures of a run.

    Args:
        overview: Scatters and long-tail curves, each with its dataset.
        matrices: A matrix for each family of comparisons between models.
        skipped: Why a figure is not there, a sentence each.
    """

    overview: tuple[tuple[str, Figure], ...]
    matrices: tuple[tuple[Comparisons, Figure], ...]
    skipped: tuple[str, ...]

    def figures(self) -> list[Figure]:
        """Return every figure."""
        return [figure for _, figure in (*self.overview, *self.matrices)]


def gallery(run: RunTables) -> Gallery:
    """Return the figures of a run."""
    names = FileNames()
    overview: list[tuple[str, Figure]] = []
    skipped: list[str] = []
    single = [each for each in datasets(run) if each != ALL]
    lists = recommended(run)
    for dataset in single:
        behind = f"-{dataset}" if len(single) > 1 else ""
        try:
            name = names.free(f"accuracy-popularity{behind}")
            overview.append((dataset, scatter(run, dataset, name=name)))
        except MissingEvidence as error:
            skipped.append(f"Accuracy against popularity bias: {error.found}; {error.remedy}.")
        shares = exposure(run, lists, dataset)
        if shares is not None:
            name = names.free(f"long-tail{behind}")
            overview.append((dataset, tail(run, shares, name=name)))
    if not any(figure.name.startswith("long-tail") for _, figure in overview):
        skipped.append("Long tail of recommended items: the run holds no lists.")
    found = [each for each in comparisons(run) if each.of_models]
    matrices = tuple((each, matrix(each, name=names.free(_stem(each, found)))) for each in found)
    return Gallery(tuple(overview), matrices, tuple(dict.fromkeys(skipped)))


def _stem(each: Comparisons, found: list[Comparisons]) -> str:
    parts = ["significance", each.title, each.part]
    if len({other.place[0] for other in found}) > 1:
        parts.append(each.place[0])
    if len({other.test for other in found if other.title == each.title}) > 1:
        parts.append(each.test)
    return "-".join(filter(None, parts))


def file_stem(said: str) -> str:
    """Return a text as a file's name: lower case letters, digits and hyphens.

    >>> file_stem("significance-nDCG@10/<x>")
    'significance-ndcg-10-x'
    """
    return re.sub(r"[^a-z0-9]+", "-", said.casefold()).strip("-")[:80] or "figure"


class FileNames:
    """File names, none given twice."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, said: str) -> str:
        """Return a file name, without its ending, that was not given yet."""
        stem = name = file_stem(said)
        number = 2
        while name in self._taken:
            name, number = f"{stem}-{number}", number + 1
        self._taken.add(name)
        return name
