"""MovieLens files to a dataset: what the plug-ins of all releases share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import SEPARATOR, Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.data.datasets.dataset_folder import Folder, find_folder, present
from recbias.data.datasets.movielens_files import (
    GENRE_FLAGS,
    NO_GENRE,
    OCCUPATIONS,
    Release,
    TextFile,
)
from recbias.data.datasets.movielens_side import Side, side_columns, side_files
from recbias.formats.delimited.layout import BadLines
from recbias.formats.delimited.reader import Rows, line_of_row, refuse_repeats
from recbias.formats.encode_ids import encode, spread

YEAR = r"\((\d{4})(?:[-–]\d{0,4})?\)(?: ?\([A-Z]+\))?$"
"""The year at the end of a title: ``(1995)``, ``(2006–2007)``, ``(1995) (V)``."""


def release_parts(release: Release) -> frozenset[str]:
    """Return the parts of a dataset that a release gives."""
    return frozenset({"train", "items"} | ({"users"} if release.users else set()))


def release_files(release: Release, data: Path, side: tuple[Side, ...]) -> list[Path]:
    """Return the files of a release and of the side tables asked for.

    Raises:
        MissingFile: One is not there.
    """
    folder = _folder(release, data)
    parts = [each for each in (release.ratings, release.movies, release.users) if each]
    main = present([folder / each.name for each in parts], fetch=release.name)
    return main + list(side_files(release, folder, data, side=side).values())


def load_release(
    release: Release, data: Path, *, side: tuple[Side, ...], bad_lines: BadLines
) -> Dataset:
    """Read a release and the side tables asked for.

    Raises:
        MalformedLine: A line does not fit its file's layout.
        MissingFile: A file is not there.
    """
    release_files(release, data, side)
    folder = Folder(_folder(release, data), bad_lines)
    ratings = folder.read(release.ratings.name, release.ratings.layout)
    user, item, value, time = release.ratings.layout.columns
    user_codes, users = _users(release, folder, ratings.table[user])
    item_codes, items = _items(release, folder, ratings.table[item])
    more = side_columns(release, folder, data, side=side, items=items.ids)
    items = Attributes(items.ids, items.frame.assign(**more), "item")
    times = _times(ratings.numbers(time), release.ratings.name)
    interactions = Interactions(
        user_codes, item_codes, ratings.numbers(value), times, users.ids, items.ids
    )
    known = users if release.users else None
    return Dataset(interactions, known, items, counts=folder.counts)


def _folder(release: Release, data: Path) -> Path:
    return find_folder(release.name, data, holds=release.ratings.name, inner=release.inner)


def _users(release: Release, folder: Folder, rated: Any) -> tuple[Codes, Attributes]:
    """Return the user of each rating and what is known of the users; nothing in most releases."""
    if release.users is None:
        ids, (codes,) = encode(rated)
        return codes, Attributes(ids, pd.DataFrame(index=range(len(ids))), "user")
    rows = folder.read(release.users.name, release.users.layout)
    ids, (codes, places) = encode(rated, rows.table["user"])
    columns = _user_columns(rows, folder.path / release.users.name, release.users)
    return codes, _table(folder, release.users, columns, (places, ids), "user")


def _items(release: Release, folder: Folder, rated: Any) -> tuple[Codes, Attributes]:
    """Return the movie of each rating and what is known of the movies."""
    rows = folder.read(release.movies.name, release.movies.layout)
    ids, (codes, places) = encode(rated, rows.table[next(iter(release.movies.layout.columns))])
    return codes, _table(folder, release.movies, _movie_columns(rows), (places, ids), "item")


def _table(
    folder: Folder,
    part: TextFile,
    columns: dict[str, AnyArray],
    rows: tuple[Codes, Vocabulary],
    kind: str,
) -> Attributes:
    codes, ids = rows
    refuse_repeats(folder.path / part.name, part.layout, codes, ids)
    spread_out = {name: spread(codes, values, len(ids)) for name, values in columns.items()}
    return Attributes(ids, pd.DataFrame(spread_out), kind)


def _times(stamps: npt.NDArray[np.int64], name: str) -> npt.NDArray[np.int64] | None:
    if stamps.size and not stamps.any():
        warn(f"{name}: every timestamp is 0, so the dataset has no times")
        return None
    return stamps


def _user_columns(rows: Rows, path: Path, part: TextFile) -> dict[str, AnyArray]:
    if part.layout.columns["occupation"] == "text":
        occupation = rows.texts("occupation")
    else:
        occupation = _occupations(rows.numbers("occupation"), path, part)
    return {
        "age": rows.numbers("age").astype(np.float64),
        "gender": rows.texts("gender"),
        "occupation": occupation,
        "zip": rows.texts("zip"),
    }


def _occupations(codes: AnyArray, path: Path, part: TextFile) -> Ids:
    unknown = np.flatnonzero((codes < 0) | (codes >= len(OCCUPATIONS)))
    if unknown.size:
        row = int(unknown[0])
        found = f"{codes[row]} is not the code of an occupation"
        raise MalformedLine(found, where=f"{path}:{line_of_row(path, part.layout, row)}")
    return np.array(OCCUPATIONS, dtype=object)[codes]


def _movie_columns(rows: Rows) -> dict[str, AnyArray]:
    titles = pd.Series(rows.texts("title"), dtype=object).str.strip()
    years = pd.to_numeric(titles.str.extract(YEAR, expand=False)).to_numpy(dtype=np.float64)
    genres = rows.texts("genres") if "genres" in rows.table.column_names else _flagged(rows)
    genres[np.isin(genres.astype(str), NO_GENRE)] = None
    return {"title": titles.to_numpy(dtype=object), "year": years, "genres": genres}


def _flagged(rows: Rows) -> Ids:
    """Return ``A|B`` for the columns of 0 and 1 of ``u.item``."""
    joined = np.full(len(rows), "", dtype=object)
    for genre in GENRE_FLAGS:
        joined[rows.numbers(genre) == 1] += SEPARATOR + genre
    return np.array([each.removeprefix(SEPARATOR) or None for each in joined], dtype=object)
