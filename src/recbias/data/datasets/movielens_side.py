"""The optional side tables of MovieLens: overview, cast and director, links, tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MissingFile, UnknownColumn
from recbias.core.input_files import has_file
from recbias.data.datasets.dataset_folder import Folder
from recbias.data.datasets.movielens_files import Release
from recbias.formats.delimited import Layout
from recbias.formats.encode_ids import scatter

Side: TypeAlias = Literal["overview", "cast", "director", "links", "tags"]
"""A side table of the movies, beyond the publisher's file of movies."""

FACTS = ("overview", "cast", "director")
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
    if set(side) & set(FACTS):
        columns = ", ".join(("item_id", *FACTS))
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
        names = [name for name in FACTS if name in side]
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
