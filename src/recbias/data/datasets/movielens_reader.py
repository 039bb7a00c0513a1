"""Reading the files of a MovieLens release into a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.data.datasets.dataset_folder import Folder, find_folder, require_files
from recbias.data.datasets.movielens_files import (
    GENRE_FLAGS,
    NO_GENRE,
    OCCUPATIONS,
    Release,
    TextFile,
)
from recbias.data.datasets.movielens_side import Side, list_side_files, read_side_columns
from recbias.formats.delimited.layout import BadLines
from recbias.formats.delimited.reader import Rows, find_line_of_row, refuse_repeats
from recbias.formats.encode_ids import align_columns, encode

YEAR = r"\((\d{4})(?:[-–]\d{0,4})?\)(?: ?\([A-Z]+\))?$"
"""The year at the end of a title: ``(1995)``, ``(2006–2007)``, ``(1995) (V)``."""


def list_files(release: Release, data: Path, side: tuple[Side, ...]) -> list[Path]:
    """Return the files of a release and of its requested side tables.

    Raises:
        MissingFile: A file does not exist.
    """
    folder = _find_folder(release, data)
    files = [file for file in (release.ratings, release.movies, release.users) if file]
    paths = require_files([folder / file.name for file in files], fetch=release.name)
    return paths + list(list_side_files(release, folder, data, side=side).values())


def load_release(
    release: Release, data: Path, *, side: tuple[Side, ...], bad_lines: BadLines
) -> Dataset:
    """Read a release and its requested side tables.

    Raises:
        MalformedLine: A line does not have the layout of its file.
        MissingFile: A file does not exist.
    """
    list_files(release, data, side)
    folder = Folder(_find_folder(release, data), bad_lines)
    ratings = folder.read(release.ratings.name, release.ratings.layout)
    user, item, value, time = release.ratings.layout.columns
    user_codes, users = _read_users(release, folder, ratings.table[user])
    item_codes, items = _read_items(release, folder, ratings.table[item])
    side_columns = read_side_columns(release, folder, data, side=side, items=items.ids)
    items = Attributes(items.ids, items.frame.assign(**side_columns), "item")
    times: AnyArray | None = ratings.numbers(time)
    if len(ratings) and not np.any(times):
        warn(f"{release.ratings.name}: every timestamp is 0, so the dataset has no times")
        times = None
    values = ratings.numbers(value)
    rows = Interactions(user_codes, item_codes, values, times, users.ids, items.ids)
    return Dataset(rows, users if release.users else None, items, counts=folder.counts)


def _find_folder(release: Release, data: Path) -> Path:
    return find_folder(release.name, data, holds=release.ratings.name, inner=release.inner)


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
    """Return the movie of each rating, and the movies' attributes."""
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
