"""MovieLens: one plug-in for each published release."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from recbias.core.dataset.dataset import Dataset
from recbias.data.datasets import movielens_files
from recbias.data.datasets.movielens_files import Release
from recbias.data.datasets.movielens_reader import list_files, load_release
from recbias.data.datasets.movielens_side import Side
from recbias.formats.delimited.layout import BadLines

_SECTIONS = """

Movies have ``title``, ``year`` and ``genres``. Users and movies without ratings are part of
the dataset.

Args:
    side: Optional columns of the movies. ``overview``, ``cast`` and ``director`` are columns of
        ``{name}-side/items.csv.gz`` in the data folder; ``links`` adds ``imdb_id`` and
        ``tmdb_id`` from ``links.csv`` in the dataset's folder or in ``{name}-side``; ``tags`` adds
        the distinct tags of each movie (MovieLens 100K and 1M have no tags).
    bad_lines: ``error`` stops at a malformed line, ``skip`` skips and counts it.

Raises:
    MissingFile: A file is missing; ``recbias data fetch {name}`` downloads the dataset.
    MalformedLine: A line does not have the published layout.

Source:
    Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
"""


@dataclass(frozen=True, kw_only=True)
class MovieLens:
    """Base of the MovieLens datasets, which differ only in the layout of their files.

    The sections that all docstrings share are added to the docstring of each subclass.
    """

    release: ClassVar[Release]

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def __init_subclass__(cls, release: Release) -> None:
        """Set the release and complete the docstring."""
        super().__init_subclass__()
        cls.release = release
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "") + _SECTIONS.format(name=release.name)

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items"} | ({"users"} if self.release.users else set()))

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return list_files(self.release, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(self.release, data, side=self.side, bad_lines=self.bad_lines)


class MovieLens100K(MovieLens, release=movielens_files.ML_100K):
    """MovieLens 100K: 100,000 ratings of 1,682 movies by 943 users, with demographics.

    Users have ``age`` (years), ``gender``, ``occupation`` and ``zip``. The genre ``unknown`` is a
    missing cell.
    """


class MovieLens1M(MovieLens, release=movielens_files.ML_1M):
    """MovieLens 1M: 1,000,209 ratings of 3,883 movies by 6,040 users, with demographics.

    Users have ``age`` (the lower bound of the age group as published: 1, 18, 25, 35, 45, 50, 56),
    ``gender``, ``occupation`` (its name) and ``zip``. If every timestamp is 0, the dataset has no
    times.
    """


class MovieLens10M(MovieLens, release=movielens_files.ML_10M):
    """MovieLens 10M: 10,000,054 ratings of 10,681 movies by 69,878 users."""


class MovieLens20M(MovieLens, release=movielens_files.ML_20M):
    """MovieLens 20M: 20,000,263 ratings of 27,278 movies by 138,493 users."""


class MovieLens25M(MovieLens, release=movielens_files.ML_25M):
    """MovieLens 25M: 25,000,095 ratings of 62,423 movies by 162,541 users."""


class MovieLens32M(MovieLens, release=movielens_files.ML_32M):
    """MovieLens 32M: 32,000,204 ratings of 87,585 movies by 200,948 users."""


class MovieLensLatestSmall(MovieLens, release=movielens_files.ML_LATEST_SMALL):
    """MovieLens latest small: 100,836 ratings of 9,742 movies by 610 users."""
