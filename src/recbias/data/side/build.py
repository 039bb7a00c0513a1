"""The side table of a MovieLens dataset from IMDb or TMDB: ``<name>-side/items.csv.gz``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from recbias.core.arrays import AnyArray, Ids
from recbias.core.errors import Contradiction, MissingFile, NothingLeft, UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import normalize_name, suggest
from recbias.data.datasets import movielens_files
from recbias.data.datasets.dataset_folder import Folder, find_folder, require_files
from recbias.data.datasets.movielens_files import Release
from recbias.data.datasets.movielens_side import LINKS
from recbias.data.fetch.transfer import wrap_write_errors

RELEASES = {
    release.name: release
    for release in vars(movielens_files).values()
    if isinstance(release, Release)
}


class FactSource(Protocol):
    """A source of facts about films."""

    @property
    def name(self) -> str:
        """The name of the source."""

    @property
    def link(self) -> str:
        """The column of the links with the numbers of the source."""

    def fetch_facts(self, numbers: Ids, side_folder: Path) -> pd.DataFrame:
        """Return columns of facts, a row for each number; None is a film without one."""


@dataclass(frozen=True)
class SideTable:
    """A side table that was written: its path, and how many of the films have each column."""

    path: Path
    n_films: int
    counts: dict[str, int]


def build_side_table(
    name: str,
    data: Path,
    source: FactSource,
    *,
    links: Path | None = None,
    replace: bool = False,
) -> SideTable:
    """Write the side table of the films of a MovieLens dataset.

    The links are copied beside the table, so that ``side: [links]`` finds them.

    Args:
        name: The dataset: ``ml-1m``.
        data: The data folder.
        source: Where the facts are from.
        links: A MovieLens file of links; by default that of the dataset, or beside its side table.
        replace: Whether an existing table is replaced.

    Raises:
        UnknownName: It is not a MovieLens dataset.
        MissingFile: The dataset or the links do not exist.
        Contradiction: The table exists.
        NothingLeft: No film of the dataset is linked to the source.
        DownloadFailed: A server does not have a file or refuses the key.
        Unwritable: The table cannot be written.
    """
    release = find_release(name)
    folder = data / f"{release.name}-side"
    target = folder / "items.csv.gz"
    if has_file(target) and not replace:
        message = "there is a side table already"
        raise Contradiction(message, where=str(target), remedy="use it, or add --replace")
    item_ids = _read_item_ids(release, data)
    links = links or _find_links(release, data)
    numbers = _read_links(links, item_ids, source.link)
    if not any(numbers):
        message = f"no film of {release.name} has a number of {source.name}"
        raise NothingLeft(message, where=str(links), remedy="name another file: --links")
    with wrap_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    facts = source.fetch_facts(numbers, folder)
    table = pd.concat([pd.Series(item_ids, name="item_id"), facts], axis=1)
    part = target.with_name(f"{target.name}.part")
    gzip: Any = {"method": "gzip", "mtime": 0}
    with wrap_write_errors(folder):
        table.to_csv(part, index=False, lineterminator="\n", compression=gzip)
        part.replace(target)
        if links.resolve() != (folder / "links.csv").resolve():
            shutil.copyfile(links, folder / "links.csv")
    counts = {str(column): int(facts[column].notna().sum()) for column in facts}
    return SideTable(target, len(table), counts)


def find_release(name: str) -> Release:
    """Return a MovieLens release by its name, without regard to case, ``-`` and ``_``.

    Raises:
        UnknownName: There is none.
    """
    releases = {normalize_name(key): release for key, release in RELEASES.items()}
    if normalize_name(name) not in releases:
        message = f"no MovieLens dataset is called {name!r}"
        raise UnknownName(message, remedy=suggest(name, RELEASES))
    return releases[normalize_name(name)]


def _read_item_ids(release: Release, data: Path) -> AnyArray:
    path = find_folder(release.name, data, holds=release.ratings.name, inner=release.inner)
    require_files([path / release.movies.name], fetch=release.name)
    rows = Folder(path).read(release.movies.name, release.movies.layout)
    return rows.numbers(next(iter(release.movies.layout.columns)))


def _find_links(release: Release, data: Path) -> Path:
    folder = find_folder(release.name, data, holds=release.ratings.name, inner=release.inner)
    paths = [folder / "links.csv", data / f"{release.name}-side" / "links.csv"]
    for path in paths:
        if has_file(path):
            return path
    message = f"{release.name} has no file of links"
    remedy = "recbias data fetch ml-25m, then --links with its links.csv: the ids are the same"
    raise MissingFile(message, where=str(paths[0]), remedy=remedy)


def _read_links(path: Path, item_ids: AnyArray, column: str) -> Ids:
    """Return the numbers of a source in the order of the films; None without one."""
    rows = Folder(path.parent).read(path.name, LINKS)
    numbers = pd.Series(rows.texts(column), index=pd.Index(rows.numbers("movieId")), dtype=object)
    numbers = numbers[~numbers.index.duplicated()].reindex(item_ids)
    return numbers.where(numbers.notna(), None).to_numpy(dtype=object)
