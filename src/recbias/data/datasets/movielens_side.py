"""The optional side tables of MovieLens: overview, cast and director, links, tags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MissingFile
from recbias.core.input_files import has_file
from recbias.data.datasets.dataset_folder import Folder
from recbias.data.datasets.movielens_files import Release
from recbias.formats.delimited.layout import Layout
from recbias.formats.encode_ids import spread

Side: TypeAlias = Literal["overview", "cast", "director", "links", "tags"]
"""A part of what is known of the movies beyond the publisher's file of movies."""

FACTS = ("overview", "cast", "director")
LINKS = Layout(columns={"movieId": "int32", "imdbId": "text", "tmdbId": "text"}, quoted=True)


def side_files(
    release: Release, folder: Path, data: Path, *, side: tuple[Side, ...]
) -> dict[str, Path]:
    """Return the files of the side tables asked for: ``facts``, ``links`` and ``tags``.

    Args:
        release: The release.
        folder: Its folder.
        data: The folder of datasets; ``<name>-side`` in it holds what the publisher does not give.
        side: What is asked for.

    Raises:
        MissingFile: One is not there.
    """
    beside = data / f"{release.name}-side"
    paths: dict[str, Path] = {}
    if set(side) & set(FACTS):
        remedy = (
            f"make it, with the columns item_id, {', '.join(FACTS)}, or leave them out of side"
        )
        paths["facts"] = _present(beside / "items.csv.gz", remedy)
    if "links" in side:
        own = folder / "links.csv"
        path = own if has_file(own) else beside / "links.csv"
        remedy = "make it, with the columns movieId, imdbId, tmdbId, or leave links out of side"
        paths["links"] = _present(path, remedy)
    if "tags" in side:
        if release.tags is None:
            found = f"{release.name} was published without tags"
            raise MissingFile(found, where="dataset.side", remedy="leave tags out of side")
        remedy = f"recbias data fetch {release.name}"
        paths["tags"] = _present(folder / release.tags.name, remedy)
    return paths


def side_columns(
    release: Release,
    folder: Folder,
    data: Path,
    *,
    side: tuple[Side, ...],
    items: Vocabulary,
) -> dict[str, AnyArray]:
    """Return the columns of the side tables asked for, each aligned to ``items``.

    Args:
        release: The release.
        folder: Its folder.
        data: The folder of datasets.
        side: What is asked for.
        items: The movies.
    """
    paths = side_files(release, folder.path, data, side=side)
    columns: dict[str, AnyArray] = {}
    if "facts" in paths:
        wanted = [name for name in FACTS if name in side]
        layout = Layout(columns={"item_id": "int32", **dict.fromkeys(wanted, "text")}, quoted=True)
        columns |= _columns(folder, paths["facts"], layout, items)
    if "links" in paths:
        links = _columns(folder, paths["links"], LINKS, items)
        columns |= {"imdb_id": links["imdbId"], "tmdb_id": links["tmdbId"]}
    if "tags" in paths and release.tags:
        columns["tags"] = _tags(folder, release.tags.name, release.tags.layout, items)
    return columns


def _present(path: Path, remedy: str) -> Path:
    if not has_file(path):
        raise MissingFile("no such side table", where=str(path), remedy=remedy)
    return path


def _columns(
    folder: Folder, path: Path, layout: Layout, items: Vocabulary
) -> Mapping[str, AnyArray]:
    rows = folder.read(str(path), layout)
    key, *names = layout.columns
    codes, known = _codes(rows.numbers(key), items)
    return {name: spread(codes, rows.texts(name)[known], len(items)) for name in names}


def _codes(ids: AnyArray, items: Vocabulary) -> tuple[Codes, AnyArray]:
    """Return the codes of the identifiers that are movies of the dataset, and their places."""
    codes = items.find(ids.astype(str).astype(object))
    known = np.flatnonzero(codes >= 0)
    return codes[known], known


def _tags(folder: Folder, name: str, layout: Layout, items: Vocabulary) -> AnyArray:
    """Return each movie's distinct tags, in the order in which they were first given."""
    rows = folder.read(name, layout)
    key = "movieId" if "movieId" in layout.columns else "item"
    codes, known = _codes(rows.numbers(key), items)
    frame = pd.DataFrame({"code": codes, "tag": rows.texts("tag")[known]}).dropna()
    frame["tag"] = frame["tag"].str.replace(SEPARATOR, "/", regex=False).str.strip()
    distinct = frame.drop_duplicates().groupby("code", sort=True)["tag"]
    joined: pd.Series[Any] = distinct.agg(SEPARATOR.join)
    return spread(joined.index.to_numpy(dtype=np.int32), joined.to_numpy(dtype=object), len(items))
