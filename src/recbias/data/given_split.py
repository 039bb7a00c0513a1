"""A split that was made elsewhere, read from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import numpy as np

from recbias.core.dataset import Dataset
from recbias.core.errors import Leakage, NothingLeft
from recbias.core.interactions import Interactions
from recbias.core.protocols import InputFile
from recbias.core.split import Split, pair_keys
from recbias.core.vocabulary import Vocabulary
from recbias.data.strict_tables import every_line
from recbias.data.tables import Tables

SHOWN = 3
"""How many leaked pairs an error names."""


@dataclass(frozen=True, kw_only=True)
class GivenSplit:
    """Train and test on the interactions of files of your own, whatever the dataset's are.

    Files are ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` with ``user_id``, ``item_id``
    and, where there are any, ``rating`` and ``timestamp``. Identifiers are kept as written, and
    matched with the dataset's tables; those that the dataset does not have are added.

    Args:
        train: The file to learn from.
        test: The file to measure on.
        validation: The file to tune on; without one there is no validation part.

    Raises:
        MissingFile: A file is not there.
        UnknownColumn: A file lacks ``user_id`` or ``item_id``.
        MalformedLine: A line does not fit.
        NothingLeft: A file has no rows.
        Leakage: A (user, item) pair stands in two of the files.
    """

    version: ClassVar[int] = 1
    folds: ClassVar[int] = 1

    train: InputFile
    test: InputFile
    validation: InputFile | None = None

    def gives(self) -> frozenset[str]:
        """Return what it makes: training interactions too."""
        return frozenset(self._paths())

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split of the files."""
        read = {name: _read(path, rng) for name, path in self._paths().items()}
        user_ids = _joined(dataset.user_ids, [each.user_ids for each in read.values()])
        item_ids = _joined(dataset.item_ids, [each.item_ids for each in read.values()])
        parts = {name: _moved(each, user_ids, item_ids) for name, each in read.items()}
        try:
            return Split(parts["train"], parts["test"], parts.get("validation"))
        except Leakage as error:
            raise self._leakage(parts) from error

    def _paths(self) -> dict[str, Path]:
        paths = {"train": self.train, "test": self.test, "validation": self.validation}
        return {name: path for name, path in paths.items() if path is not None}

    def _leakage(self, parts: Mapping[str, Interactions]) -> Leakage:
        """Return the error that names the first pairs that stand in two files."""
        paths = {name: path.name for name, path in self._paths().items()}
        found = []
        for first, second in combinations(parts, 2):
            rows = parts[second]
            both = np.flatnonzero(np.isin(pair_keys(rows), pair_keys(parts[first])))
            if both.size:
                where = f"{paths[first]} and {paths[second]}"
                named = _named(rows.take(both[:SHOWN])) + (", ..." if both.size > SHOWN else "")
                found.append(f"{both.size:,} (user, item) pairs stand in {where}: {named}")
        return Leakage("; ".join(found), where="split", remedy="take them out of one of the files")


def _read(path: Path, rng: np.random.Generator) -> Interactions:
    with every_line():
        rows = Tables(interactions=path).load(Path(), rng).interactions
    if not len(rows):
        raise NothingLeft("has no interactions", where=str(path))
    return rows


def _named(rows: Interactions) -> str:
    """Return the pairs of a few rows, as a user would write them."""
    users, items = rows.user_ids.ids[rows.users], rows.item_ids.ids[rows.items]
    return ", ".join(map(str, zip(users, items, strict=True)))


def _joined(known: Vocabulary, others: list[Vocabulary]) -> Vocabulary:
    """Return the identifiers of all, in natural order; ``known`` itself where none is new."""
    found = np.concatenate([each.ids for each in others])
    new = found[known.find(found) < 0]
    return Vocabulary.of([*known.ids, *new]) if new.size else known


def _moved(rows: Interactions, user_ids: Vocabulary, item_ids: Vocabulary) -> Interactions:
    """Return the same rows over other vocabularies."""
    users = user_ids.find(rows.user_ids.ids)[rows.users]
    items = item_ids.find(rows.item_ids.ids)[rows.items]
    return replace(rows, users=users, items=items, user_ids=user_ids, item_ids=item_ids)
