"""MovieLens: one plug-in for each published release."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.data.datasets import movielens_files
from recbias.data.datasets.dataset_folder import Folder, find_folder, require_files
from recbias.data.datasets.movielens_files import (
    GENRE_FLAGS,
    NO_GENRE,
    OCCUPATIONS,
    Release,
    TextFile,
)
from recbias.data.datasets.movielens_side import Side, list_side_files, read_side_columns
from recbias.formats.delimited import BadLines, Rows, find_line_of_row, refuse_repeats
from recbias.formats.encode_ids import align_columns, encode

YEAR = r"\((\d{4})(?:[-–]\d{0,4})?\)(?: ?\([A-Z]+\))?$"
"""The year at the end of a title: ``(1995)``, ``(2006–2007)``, ``(1995) (V)``."""

_SECTIONS = """

Movies have ``title``, ``year`` and ``genres``. Users and movies without ratings are part of
the dataset.

Args:
    side: Optional columns of the movies. ``overview``, ``cast`` and ``director`` are columns of
        ``{name}-side/items.csv.gz`` in the data folder, which ``recbias data side {name}`` writes;
        ``links`` adds ``imdb_id`` and
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
        super().__init_subclass__()
        cls.release = release
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "") + _SECTIONS.format(name=release.name)

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"train", "items"} | ({"users"} if self.release.users else set()))

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        release, folder = self.release, self._find_folder(data)
        files = [file for file in (release.ratings, release.movies, release.users) if file]
        paths = require_files([folder / file.name for file in files], fetch=release.name)
        return paths + list(list_side_files(release, folder, data, side=self.side).values())

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        release, folder = self.release, Folder(self._find_folder(data), self.bad_lines)
        ratings = folder.read(release.ratings.name, release.ratings.layout)
        user, item, value, time = release.ratings.layout.columns
        user_codes, users = _read_users(release, folder, ratings.table[user])
        item_codes, items = _read_items(release, folder, ratings.table[item])
        side_columns = read_side_columns(release, folder, data, side=self.side, items=items.ids)
        items = Attributes(items.ids, items.frame.assign(**side_columns), "item")
        times: AnyArray | None = ratings.numbers(time)
        if len(ratings) and not np.any(times):
            warn(f"{release.ratings.name}: every timestamp is 0, so the dataset has no times")
            times = None
        values = ratings.numbers(value)
        rows = Interactions(user_codes, item_codes, values, times, users.ids, items.ids)
        return Dataset(rows, users if release.users else None, items, counts=folder.counts)

    def _find_folder(self, data: Path) -> Path:
        name, inner = self.release.name, self.release.inner
        return find_folder(name, data, holds=self.release.ratings.name, inner=inner)


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


def _read_users(release: Release, folder: Folder, user_column: Any) -> tuple[Codes, Attributes]:
    """Return the user of each rating, and the users' attributes; most releases have none."""
    if release.users is None:
        ids, (codes,) = encode(user_column)
        return codes, Attributes(ids, pd.DataFrame(index=range(len(ids))), "user")
    rows = folder.read(release.users.name, release.users.layout)
    ids, (codes, user_codes) = encode(user_column, rows.table["user"])
    columns = _build_user_columns(rows, folder.path / release.users.name, release.users)
    return codes, _align(folder, release.users, columns, (user_codes, ids), "user")


def _read_items(release: Release, folder: Folder, item_column: Any) -> tuple[Codes, Attributes]:
    rows = folder.read(release.movies.name, release.movies.layout)
    key = next(iter(release.movies.layout.columns))
    ids, (codes, item_codes) = encode(item_column, rows.table[key])
    columns = _build_movie_columns(rows)
    return codes, _align(folder, release.movies, columns, (item_codes, ids), "item")


def _align(
    folder: Folder,
    file: TextFile,
    columns: dict[str, AnyArray],
    rows: tuple[Codes, Vocabulary],
    kind: str,
) -> Attributes:
    """Return the columns of a file in the order of the identifiers."""
    codes, ids = rows
    refuse_repeats(folder.path / file.name, file.layout, codes, ids)
    return align_columns(codes, columns, ids, kind)


def _build_user_columns(rows: Rows, path: Path, file: TextFile) -> dict[str, AnyArray]:
    is_named = file.layout.columns["occupation"] == "text"
    return {
        "age": rows.numbers("age").astype(np.float64),
        "gender": rows.texts("gender"),
        "occupation": rows.texts("occupation")
        if is_named
        else _decode_occupations(rows, path, file),
        "zip": rows.texts("zip"),
    }


def _decode_occupations(rows: Rows, path: Path, file: TextFile) -> Ids:
    codes = rows.numbers("occupation")
    unknown_rows = np.flatnonzero((codes < 0) | (codes >= len(OCCUPATIONS)))
    if unknown_rows.size:
        row = int(unknown_rows[0])
        message = f"{codes[row]} is not the code of an occupation"
        raise MalformedLine(message, where=f"{path}:{find_line_of_row(path, file.layout, row)}")
    return np.array(OCCUPATIONS, dtype=object)[codes]


def _build_movie_columns(rows: Rows) -> dict[str, AnyArray]:
    titles = pd.Series(rows.texts("title"), dtype=object).str.strip()
    years = pd.to_numeric(titles.str.extract(YEAR, expand=False)).to_numpy(dtype=np.float64)
    has_genres = "genres" in rows.table.column_names
    genres = rows.texts("genres") if has_genres else _join_genre_flags(rows)
    genres[np.isin(genres.astype(str), NO_GENRE)] = None
    return {"title": titles.to_numpy(dtype=object), "year": years, "genres": genres}


def _join_genre_flags(rows: Rows) -> Ids:
    """Return ``A|B`` for the 0/1 columns of ``u.item``."""
    genres = np.full(len(rows), "", dtype=object)
    for genre in GENRE_FLAGS:
        genres[rows.numbers(genre) == 1] += SEPARATOR + genre
    return np.array([text.removeprefix(SEPARATOR) or None for text in genres], dtype=object)
