"""MovieLens, one plug-in for each published release.

The releases differ in their files (``movielens_layouts``); everything else they share
(``movielens_reading``, ``movielens_side``). Users and movies without a rating stay in the dataset.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recbias.core.dataset.dataset import Dataset
from recbias.data.datasets import movielens_files as layouts
from recbias.data.datasets.movielens_reader import load_release, release_files, release_parts
from recbias.data.datasets.movielens_side import Side
from recbias.formats.delimited.layout import BadLines


@dataclass(frozen=True, kw_only=True)
class MovieLens100K:
    """MovieLens 100K: 100,000 ratings of 1,682 movies by 943 users, with demographics.

    Users have ``age`` (years), ``gender``, ``occupation`` and ``zip``; movies have ``title``,
    ``year`` and ``genres``. The genre ``unknown`` is a missing cell.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-100k-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``, of ``ml-100k-side/links.csv``).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-100k`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_100K)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_100K, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(layouts.ML_100K, data, side=self.side, bad_lines=self.bad_lines)


@dataclass(frozen=True, kw_only=True)
class MovieLens1M:
    """MovieLens 1M: 1,000,209 ratings of 3,883 movies by 6,040 users, with demographics.

    Users have ``age`` (the lower end of the age group as published: 1, 18, 25, 35, 45, 50, 56),
    ``gender``, ``occupation`` in words and ``zip``; movies have ``title``, ``year`` and
    ``genres``. Where every timestamp is 0 the dataset has no times.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-1m-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``, of ``ml-1m-side/links.csv``).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-1m`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_1M)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_1M, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(layouts.ML_1M, data, side=self.side, bad_lines=self.bad_lines)


@dataclass(frozen=True, kw_only=True)
class MovieLens10M:
    """MovieLens 10M: 10,000,054 ratings of 10,681 movies by 69,878 users.

    Movies have ``title``, ``year`` and ``genres``.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-10m-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``, of ``ml-10m-side/links.csv``),
            ``tags`` (each movie's distinct tags).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-10m`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_10M)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_10M, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(layouts.ML_10M, data, side=self.side, bad_lines=self.bad_lines)


@dataclass(frozen=True, kw_only=True)
class MovieLens20M:
    """MovieLens 20M: 20,000,263 ratings of 27,278 movies by 138,493 users.

    Movies have ``title``, ``year`` and ``genres``.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-20m-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``),
            ``tags`` (each movie's distinct tags).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-20m`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_20M)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_20M, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(layouts.ML_20M, data, side=self.side, bad_lines=self.bad_lines)


@dataclass(frozen=True, kw_only=True)
class MovieLens25M:
    """MovieLens 25M: 25,000,095 ratings of 62,423 movies by 162,541 users.

    Movies have ``title``, ``year`` and ``genres``.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-25m-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``),
            ``tags`` (each movie's distinct tags).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-25m`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_25M)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_25M, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(layouts.ML_25M, data, side=self.side, bad_lines=self.bad_lines)


@dataclass(frozen=True, kw_only=True)
class MovieLens32M:
    """MovieLens 32M: 32,000,204 ratings of 87,585 movies by 200,948 users.

    Movies have ``title``, ``year`` and ``genres``.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-32m-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``),
            ``tags`` (each movie's distinct tags).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-32m`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_32M)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_32M, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(layouts.ML_32M, data, side=self.side, bad_lines=self.bad_lines)


@dataclass(frozen=True, kw_only=True)
class MovieLensLatestSmall:
    """MovieLens latest small: 100,836 ratings of 9,742 movies by 610 users.

    Movies have ``title``, ``year`` and ``genres``.

    Args:
        side: More that is known of the movies. ``overview``, ``cast`` and ``director`` (columns
            of the table ``ml-latest-small-side/items.csv.gz`` beside the dataset's folder),
            ``links`` (``imdb_id`` and ``tmdb_id``),
            ``tags`` (each movie's distinct tags).
        bad_lines: ``error`` stops at a malformed line, ``skip`` leaves it out and counts it.

    Raises:
        MissingFile: ``recbias data fetch ml-latest-small`` was not done.
        MalformedLine: A line does not have the published layout.

    Source:
        Harper and Konstan, "The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015.
    """

    side: tuple[Side, ...] = ()
    bad_lines: BadLines = "error"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return release_parts(layouts.ML_LATEST_SMALL)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return release_files(layouts.ML_LATEST_SMALL, data, self.side)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        return load_release(
            layouts.ML_LATEST_SMALL, data, side=self.side, bad_lines=self.bad_lines
        )
