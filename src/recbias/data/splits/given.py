"""A split that was made elsewhere, read from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, pair_keys
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import Leakage, NothingLeft, UnknownIdentifier
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.data.datasets.tables import Tables
from recbias.formats.qrels import is_qrels, read_qrels
from recbias.formats.strict_tables import every_line

SHOWN = 3
"""How many leaked pairs an error names."""


@dataclass(frozen=True, kw_only=True)
class GivenSplit:
    """Train and test on the interactions of files of your own, whatever the dataset's are.

    Files are ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` with ``user_id``, ``item_id``
    and, where there are any, ``rating`` and ``timestamp``; or what Elliot and RecBole write, as
    the dataset ``tables`` reads it. Identifiers are kept as written, and matched with the
    dataset's tables; those that the dataset does not have are added.

    Any part may be relevance judgements: TREC qrels (``.qrels``, ``.qrel``, ``.trec``, ``.txt``:
    query, 0, item, grade) or JSON (``.json``: ``{query: {item: grade}}``), also with ``.gz``. The
    items of a grade of at least ``least_grade`` are the rows.

    Args:
        train: The file to learn from.
        test: The file to measure on.
        validation: The file to tune on; without one there is no validation part.
        least_grade: The least grade of judgements that is relevant.

    Raises:
        MissingFile: A file is not there.
        UnknownColumn: A file lacks ``user_id`` or ``item_id``.
        MalformedLine: A line does not fit.
        NothingLeft: A file has no rows.
        Leakage: A (user, item) pair stands in two of the files.
        UnknownIdentifier: No query of the judgements is a user of the training file or dataset.
    """

    folds: ClassVar[int] = 1

    train: InputFile
    test: InputFile
    validation: InputFile | None = None
    least_grade: Annotated[int, Gt(0)] = 1

    def gives(self) -> frozenset[str]:
        """Return what it makes: training interactions too."""
        return frozenset(self._paths())

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split of the files."""
        read = {name: self._read(path, rng) for name, path in self._paths().items()}
        if is_qrels(self.test):
            _check_queries(read["test"], read["train"].user_ids, dataset.user_ids, self.test)
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

    def _read(self, path: Path, rng: np.random.Generator) -> Interactions:
        if is_qrels(path):
            rows = read_qrels(path, self.least_grade)
        else:
            with every_line():
                rows = Tables(interactions=path).load(Path(), rng).interactions
        if not len(rows):
            graded = f"item of grade {self.least_grade} or more"
            what = graded if is_qrels(path) else "interactions"
            raise NothingLeft(f"has no {what}", where=str(path))
        return rows

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


def _check_queries(test: Interactions, trained: Vocabulary, known: Vocabulary, path: Path) -> None:
    """Count the queries of judgements that have no training row; refuse them if none is known."""
    names = test.user_ids.ids
    new = names[trained.find(names) < 0]
    if new.size == names.size and (known.find(names) < 0).all():
        users = [*trained.ids, *known.ids]
        found = f"none of its {names.size:,} queries is a user: the first is {names[0]!r}"
        remedy = suggest(names[0], users)
        raise UnknownIdentifier(found, where=str(path), remedy=remedy)
    if new.size:
        shown = ", ".join(map(repr, new[:SHOWN])) + (", ..." if new.size > SHOWN else "")
        total = f"{new.size:,} of {names.size:,} queries"
        warn(f"{path.name}: {total} have no row in the training file: {shown}")


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
