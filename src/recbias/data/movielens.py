"""MovieLens: one plug-in for each release, and the side tables of its movies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.dataset import AnyArray, Attributes, Vocabulary
from recbias.core.errors import MissingFile, UnknownColumn
from recbias.core.files import has_file
from recbias.data.declared import Declared, Folder, require_files
from recbias.formats.identifiers import scatter
from recbias.formats.tables import read_text_table

Side: TypeAlias = Literal["overview", "cast", "director", "links", "tags"]
"""A side table of the movies, beyond the publisher's file of movies."""

_FACTS = ("overview", "cast", "director")


@dataclass(frozen=True, kw_only=True)
class MovieLens(Declared):
    """Base of the MovieLens datasets, which differ only in the layout of their files."""

    side: tuple[Side, ...] = ()

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        return [*super().files(data), *self.list_side_files(data).values()]

    def list_side_files(self, data: Path) -> dict[str, Path]:
        """Return the files of the requested side tables that are not declared.

        The folder ``<name>-side`` of ``data`` has the tables that are not published.

        Raises:
            MissingFile: A file does not exist, or the release has no tags.
        """
        name, paths = self.declaration["name"], dict[str, Path]()
        if set(self.side) & set(_FACTS):
            columns = ", ".join(("item_id", *_FACTS))
            source = " --source tmdb" if "overview" in self.side else ""
            remedy = f"recbias data side {name}{source}, or create it: {columns}"
            facts = data / f"{name}-side" / "items.csv.gz"
            paths["facts"] = _require_file(facts, remedy)
        if "links" in self.side:
            remedy = "create it: movieId, imdbId, tmdbId, or remove links from side"
            paths["links"] = _require_file(self.find_links(data), remedy)
        if "tags" in self.side and "joined" not in self.declaration:
            message, remedy = f"{name} was published without tags", "remove tags from side"
            raise MissingFile(message, where="dataset.side", remedy=remedy)
        return paths

    def find_links(self, data: Path) -> Path:
        """Return the publisher's file of links, or else that beside the side table."""
        path, name = self.find_folder(data) / "links.csv", self.declaration["name"]
        return path if has_file(path) else data / f"{name}-side" / "links.csv"

    def read_item_ids(self, data: Path) -> AnyArray:
        """Return the identifiers of the movies in the order of their file."""
        folder, table = Folder(self.find_folder(data)), self.read_tables()["items"]
        require_files([folder.path / table.files[0]], fetch=self.declaration["name"])
        return np.asarray(table.read(folder)["item_id"].to_numpy())

    def read_columns(self, folder: Folder, data: Path, items: Attributes) -> dict[str, AnyArray]:
        """Return the columns of the requested side tables in the order of the movies."""
        paths, columns = self.list_side_files(data), dict[str, AnyArray]()
        if "facts" in paths:
            names = [name for name in _FACTS if name in self.side]
            try:
                columns |= _read_columns(paths["facts"], "item_id", names, items.ids)
            except UnknownColumn as error:
                if "overview" in names:  # which a table of IMDb lacks
                    name = self.declaration["name"]
                    build = f"recbias data side {name} --source tmdb --replace"
                    error.remedy = f"{error.remedy}; {build} writes all columns"
                raise
        if "links" in paths:
            links = _read_columns(paths["links"], "movieId", ["imdbId", "tmdbId"], items.ids)
            columns |= {"imdb_id": links["imdbId"], "tmdb_id": links["tmdbId"]}
        return columns


def _require_file(path: Path, remedy: str) -> Path:
    if not has_file(path):
        raise MissingFile("no such side table", where=str(path), remedy=remedy)
    return path


def _read_columns(
    path: Path, key: str, names: Sequence[str], items: Vocabulary
) -> Mapping[str, AnyArray]:
    """Return the columns of a table in the order of the movies that the dataset has."""
    table = read_text_table(path)
    table.need(key, *names)
    codes = items.find(table.ids(key))
    known = np.flatnonzero(codes >= 0)
    return {name: scatter(codes[known], table.optional(name)[known], len(items)) for name in names}


class MovieLens100K(MovieLens, declaration="ml-100k"):
    """MovieLens 100K."""


class MovieLens1M(MovieLens, declaration="ml-1m"):
    """MovieLens 1M."""


class MovieLens10M(MovieLens, declaration="ml-10m"):
    """MovieLens 10M."""


class MovieLens20M(MovieLens, declaration="ml-20m"):
    """MovieLens 20M."""


class MovieLens25M(MovieLens, declaration="ml-25m"):
    """MovieLens 25M."""


class MovieLens32M(MovieLens, declaration="ml-32m"):
    """MovieLens 32M."""


class MovieLensLatestSmall(MovieLens, declaration="ml-latest-small"):
    """MovieLens latest small."""
