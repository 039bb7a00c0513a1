"""MovieLens: files, layouts and codes of every release, its side tables, and one plug-in each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import (
    SEPARATOR,
    AnyArray,
    Attributes,
    Codes,
    Dataset,
    Ids,
    Interactions,
    Vocabulary,
)
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.core.files import has_file
from recbias.data.books_yelp import Folder, find_folder, require_files
from recbias.formats.delimited import (
    BadLines,
    Kind,
    Layout,
    Rows,
    align_columns,
    encode,
    find_line_of_row,
    refuse_repeats,
    scatter,
)

GENRE_FLAGS = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime"),
    *("Documentary", "Drama", "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery"),
    *("Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
"""The genres of ``u.item``, one 0/1 column each, in the order of ``u.genre``."""

_RATINGS: Mapping[str, Kind] = {
    "user": "int32",
    "item": "int32",
    "rating": "float32",
    "timestamp": "int64",
}
_RATINGS_CSV: Mapping[str, Kind] = {
    "userId": "int32",
    "movieId": "int32",
    "rating": "float32",
    "timestamp": "int64",
}
_MOVIES_100K: Mapping[str, Kind] = {
    "item": "int32",
    **dict.fromkeys(("title", "released", "video_released", "url"), "text"),
    **dict.fromkeys(GENRE_FLAGS, "int32"),
}
_MOVIES: Mapping[str, Kind] = {"item": "int32", "title": "text", "genres": "text"}
_USERS_1M: Mapping[str, Kind] = {
    "user": "int32",
    "gender": "text",
    "age": "int32",
    "occupation": "int32",
    "zip": "text",
}
_USERS_100K: Mapping[str, Kind] = {
    "user": "int32",
    "age": "int32",
    "gender": "text",
    "occupation": "text",
    "zip": "text",
}
_TAGS: Mapping[str, Kind] = {"user": "int32", "item": "int32", "tag": "text", "timestamp": "int64"}

_NO_GENRE = ("(no genres listed)", "unknown")  # values of the genre of a movie without genres

OCCUPATIONS = (
    *("other", "academic/educator", "artist", "clerical/admin", "college/grad student"),
    *("customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker"),
    *("K-12 student", "lawyer", "programmer", "retired", "sales/marketing", "scientist"),
    *("self-employed", "technician/engineer", "tradesman/craftsman", "unemployed", "writer"),
)
"""The occupations of ``users.dat`` by their code, from 0 to 20."""


AGES = {
    "1": "under 18",
    "18": "18-24",
    "25": "25-34",
    "35": "35-44",
    "45": "45-49",
    "50": "50-55",
    "56": "56+",
}
"""The age groups of ``users.dat`` by their code."""


@dataclass(frozen=True)
class _TextFile:
    """The name and layout of a file of a release."""

    name: str
    layout: Layout


@dataclass(frozen=True, kw_only=True)
class Release:
    """A published MovieLens dataset: its folder, the folder in its archive, and its files."""

    name: str
    inner: str
    ratings: _TextFile
    movies: _TextFile
    users: _TextFile | None = None
    tags: _TextFile | None = None


def _make_dat_layout(columns: Mapping[str, Kind], encoding: str) -> Layout:
    return Layout(columns=columns, delimiter="::", header=False, encoding=encoding)


def _make_csv_release(name: str) -> Release:
    movies: Mapping[str, Kind] = {"movieId": "int32", "title": "text", "genres": "text"}
    tags: Mapping[str, Kind] = {"movieId": "int32", "tag": "text"}
    return Release(
        name=name,
        inner=name,
        ratings=_TextFile("ratings.csv", Layout(columns=_RATINGS_CSV)),
        movies=_TextFile("movies.csv", Layout(columns=movies, quoted=True)),
        tags=_TextFile("tags.csv", Layout(columns=tags, quoted=True)),
    )


ML_100K = Release(
    name="ml-100k",
    inner="ml-100k",
    ratings=_TextFile("u.data", Layout(columns=_RATINGS, delimiter="\t", header=False)),
    movies=_TextFile(
        "u.item", Layout(columns=_MOVIES_100K, delimiter="|", header=False, encoding="latin-1")
    ),
    users=_TextFile("u.user", Layout(columns=_USERS_100K, delimiter="|", header=False)),
)
ML_1M = Release(
    name="ml-1m",
    inner="ml-1m",
    ratings=_TextFile("ratings.dat", _make_dat_layout(_RATINGS, "latin-1")),
    movies=_TextFile("movies.dat", _make_dat_layout(_MOVIES, "latin-1")),
    users=_TextFile("users.dat", _make_dat_layout(_USERS_1M, "latin-1")),
)
_ML_10M = Release(
    name="ml-10m",
    inner="ml-10M100K",
    ratings=_TextFile("ratings.dat", _make_dat_layout(_RATINGS, "utf-8")),
    movies=_TextFile("movies.dat", _make_dat_layout(_MOVIES, "utf-8")),
    tags=_TextFile("tags.dat", _make_dat_layout(_TAGS, "utf-8")),
)
_ML_20M = _make_csv_release("ml-20m")
_ML_25M = _make_csv_release("ml-25m")
_ML_32M = _make_csv_release("ml-32m")
ML_LATEST_SMALL = _make_csv_release("ml-latest-small")


Side: TypeAlias = Literal["overview", "cast", "director", "links", "tags"]
"""A side table of the movies, beyond the publisher's file of movies."""

_FACTS = ("overview", "cast", "director")
LINKS = Layout(columns={"movieId": "int32", "imdbId": "text", "tmdbId": "text"}, quoted=True)


def list_side_files(
    release: Release, folder: Path, data: Path, *, side: tuple[Side, ...]
) -> dict[str, Path]:
    """Return the files of the requested side tables: ``facts``, ``links`` and ``tags``.

    The folder ``<name>-side`` of ``data`` has the tables that are not published.

    Raises:
        MissingFile: A file does not exist.
    """
    side_folder = data / f"{release.name}-side"
    paths: dict[str, Path] = {}
    if set(side) & set(_FACTS):
        columns = ", ".join(("item_id", *_FACTS))
        source = " --source tmdb" if "overview" in side else ""
        remedy = f"recbias data side {release.name}{source}, or create it: {columns}"
        paths["facts"] = _require_file(side_folder / "items.csv.gz", remedy)
    if "links" in side:
        published = folder / "links.csv"
        path = published if has_file(published) else side_folder / "links.csv"
        remedy = "create it with the columns movieId, imdbId, tmdbId, or remove links from side"
        paths["links"] = _require_file(path, remedy)
    if "tags" in side:
        if release.tags is None:
            message = f"{release.name} was published without tags"
            raise MissingFile(message, where="dataset.side", remedy="remove tags from side")
        remedy = f"recbias data fetch {release.name}"
        paths["tags"] = _require_file(folder / release.tags.name, remedy)
    return paths


def read_side_columns(
    release: Release, folder: Folder, data: Path, *, side: tuple[Side, ...], items: Vocabulary
) -> dict[str, AnyArray]:
    """Return the columns of the requested side tables in the order of ``items``, the movies."""
    paths = list_side_files(release, folder.path, data, side=side)
    columns: dict[str, AnyArray] = {}
    if "facts" in paths:
        names = [name for name in _FACTS if name in side]
        layout = Layout(columns={"item_id": "int32", **dict.fromkeys(names, "text")}, quoted=True)
        try:
            columns |= _read_columns(folder, paths["facts"], layout, items)
        except UnknownColumn as error:
            if "overview" in names:  # which a table of IMDb lacks
                build = f"recbias data side {release.name} --source tmdb --replace"
                error.remedy = f"{error.remedy}; {build} writes all columns"
            raise
    if "links" in paths:
        links = _read_columns(folder, paths["links"], LINKS, items)
        columns |= {"imdb_id": links["imdbId"], "tmdb_id": links["tmdbId"]}
    if "tags" in paths and release.tags:
        columns["tags"] = _read_tags(folder, release.tags.name, release.tags.layout, items)
    return columns


def _require_file(path: Path, remedy: str) -> Path:
    if not has_file(path):
        raise MissingFile("no such side table", where=str(path), remedy=remedy)
    return path


def _read_columns(
    folder: Folder, path: Path, layout: Layout, items: Vocabulary
) -> Mapping[str, AnyArray]:
    rows = replace(folder, path=path.parent).read(path.name, layout)
    key, *names = layout.columns
    codes, known_rows = _find_items(rows.numbers(key), items)
    return {name: scatter(codes, rows.texts(name)[known_rows], len(items)) for name in names}


def _find_items(ids: AnyArray, items: Vocabulary) -> tuple[Codes, AnyArray]:
    """Return the codes of the movies that the dataset has, and their rows."""
    codes = items.find(ids.astype(str).astype(object))
    known_rows = np.flatnonzero(codes >= 0)
    return codes[known_rows], known_rows


def _read_tags(folder: Folder, name: str, layout: Layout, items: Vocabulary) -> AnyArray:
    """Return the distinct tags of each movie, in order of appearance."""
    rows = folder.read(name, layout)
    key = "movieId" if "movieId" in layout.columns else "item"
    codes, known_rows = _find_items(rows.numbers(key), items)
    frame = pd.DataFrame({"code": codes, "tag": rows.texts("tag")[known_rows]}).dropna()
    frame["tag"] = frame["tag"].str.replace(SEPARATOR, "/", regex=False).str.strip()
    distinct = frame.drop_duplicates().groupby("code", sort=True)["tag"]
    joined: pd.Series[Any] = distinct.agg(SEPARATOR.join)
    item_codes = joined.index.to_numpy(dtype=np.int32)
    return scatter(item_codes, joined.to_numpy(dtype=object), len(items))


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


class MovieLens100K(MovieLens, release=ML_100K):
    """MovieLens 100K: 100,000 ratings of 1,682 movies by 943 users, with demographics.

    Users have ``age`` (years), ``gender``, ``occupation`` and ``zip``. The genre ``unknown`` is a
    missing cell.
    """


class MovieLens1M(MovieLens, release=ML_1M):
    """MovieLens 1M: 1,000,209 ratings of 3,883 movies by 6,040 users, with demographics.

    Users have ``age`` (the lower bound of the age group as published: 1, 18, 25, 35, 45, 50, 56;
    reports name the groups), ``gender``, ``occupation`` (its name) and ``zip``. If every timestamp
    is 0, the dataset has no times.
    """

    value_labels: ClassVar = {"age": AGES}


class MovieLens10M(MovieLens, release=_ML_10M):
    """MovieLens 10M: 10,000,054 ratings of 10,681 movies by 69,878 users."""


class MovieLens20M(MovieLens, release=_ML_20M):
    """MovieLens 20M: 20,000,263 ratings of 27,278 movies by 138,493 users."""


class MovieLens25M(MovieLens, release=_ML_25M):
    """MovieLens 25M: 25,000,095 ratings of 62,423 movies by 162,541 users."""


class MovieLens32M(MovieLens, release=_ML_32M):
    """MovieLens 32M: 32,000,204 ratings of 87,585 movies by 200,948 users."""


class MovieLensLatestSmall(MovieLens, release=ML_LATEST_SMALL):
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
    file: _TextFile,
    columns: dict[str, AnyArray],
    rows: tuple[Codes, Vocabulary],
    kind: str,
) -> Attributes:
    """Return the columns of a file in the order of the identifiers."""
    codes, ids = rows
    refuse_repeats(folder.path / file.name, file.layout, codes, ids)
    return align_columns(codes, columns, ids, kind)


def _build_user_columns(rows: Rows, path: Path, file: _TextFile) -> dict[str, AnyArray]:
    is_named = file.layout.columns["occupation"] == "text"
    return {
        "age": rows.numbers("age").astype(np.float64),
        "gender": rows.texts("gender"),
        "occupation": rows.texts("occupation")
        if is_named
        else _decode_occupations(rows, path, file),
        "zip": rows.texts("zip"),
    }


def _decode_occupations(rows: Rows, path: Path, file: _TextFile) -> Ids:
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
    genres[np.isin(genres.astype(str), _NO_GENRE)] = None
    return {"title": titles.to_numpy(dtype=object), "year": years, "genres": genres}


def _join_genre_flags(rows: Rows) -> Ids:
    """Return ``A|B`` for the 0/1 columns of ``u.item``."""
    genres = np.full(len(rows), "", dtype=object)
    for genre in GENRE_FLAGS:
        genres[rows.numbers(genre) == 1] += SEPARATOR + genre
    return np.array([text.removeprefix(SEPARATOR) or None for text in genres], dtype=object)
