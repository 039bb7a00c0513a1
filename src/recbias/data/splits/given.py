"""A split read from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.split import Split, encode_pairs
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import Leakage, NothingLeft, UnknownIdentifier
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.data.datasets.tables import Tables
from recbias.formats.delimited import require_every_line
from recbias.formats.interactions import is_qrels, read_qrels
from recbias.formats.table_settings import TableSettings
from recbias.formats.tables import list_file_columns

MAX_LISTED = 3


@dataclass(frozen=True, kw_only=True)
class GivenSplit:
    """Train and test on the interactions of your own files instead of those of the dataset.

    Files are ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` with ``user_id``, ``item_id``
    and optionally ``rating`` and ``timestamp``, or files of Elliot and RecBole, read as by the
    dataset ``tables``. Identifiers are kept as written and matched with the tables of the dataset;
    identifiers that the dataset lacks are added.

    Any part may be relevance judgements: TREC qrels (``.qrels``, ``.qrel``, ``.trec``, ``.txt``:
    query, 0, item, grade) or JSON (``.json``: ``{query: {item: grade}}``), also with ``.gz``. The
    rows are the items with a grade of at least ``least_grade``.

    Args:
        train: The training file.
        test: The test file.
        validation: The validation file; None for no validation part.
        least_grade: The lowest grade of a judgement that is relevant.
        columns: New names of columns, by their names in the files: ``{customer: user_id}``.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: A file lacks ``user_id`` or ``item_id``, or none has a column that
            ``columns`` names.
        MalformedLine: A line is malformed.
        NothingLeft: A file has no rows.
        Leakage: A (user, item) pair is in two of the files.
        UnknownIdentifier: No query of the judgements is a user of the training file or dataset.
    """

    folds: ClassVar[int] = 1

    train: InputFile
    test: InputFile
    validation: InputFile | None = None
    least_grade: Annotated[int, Gt(0)] = 1
    columns: dict[str, str] = field(default_factory=dict, hash=False)

    def gives(self) -> frozenset[str]:
        """Return the parts that the split makes, including training interactions."""
        return frozenset(self._list_paths())

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split of the files."""
        self._refuse_unknown_columns()
        parts = {name: self._read(path, rng) for name, path in self._list_paths().items()}
        if is_qrels(self.test):
            _validate_queries(parts["test"], parts["train"].user_ids, dataset.user_ids, self.test)
        user_ids = _extend(dataset.user_ids, [rows.user_ids for rows in parts.values()])
        item_ids = _extend(dataset.item_ids, [rows.item_ids for rows in parts.values()])
        for name, rows in parts.items():
            users = user_ids.find(rows.user_ids.ids)[rows.users]
            items = item_ids.find(rows.item_ids.ids)[rows.items]
            recoded = replace(rows, users=users, items=items)
            parts[name] = replace(recoded, user_ids=user_ids, item_ids=item_ids)
        try:
            return Split(parts["train"], parts["test"], parts.get("validation"))
        except Leakage as error:
            raise self._describe_leakage(parts) from error

    def _list_paths(self) -> dict[str, Path]:
        paths = {"train": self.train, "test": self.test, "validation": self.validation}
        return {name: path for name, path in paths.items() if path is not None}

    def _refuse_unknown_columns(self) -> None:
        """Raise UnknownColumn if ``columns`` names a column that no file has."""
        if not self.columns:
            return
        tables = [path for path in self._list_paths().values() if not is_qrels(path)]
        names = {name for path in tables for name in list_file_columns(path)}
        TableSettings(columns=self.columns).refuse_unknown_columns(names)

    def _read(self, path: Path, rng: np.random.Generator) -> Interactions:
        if is_qrels(path):
            rows = read_qrels(path, self.least_grade)
            content = f"item of grade {self.least_grade} or more"
        else:
            with require_every_line():
                present = set(list_file_columns(path)) if self.columns else set()
                columns = {name: new for name, new in self.columns.items() if name in present}
                table = Tables(interactions=path, columns=columns)
                rows = table.load(Path(), rng).interactions
            content = "interactions"
        if not len(rows):
            remedy = "add rows, or name another file"
            raise NothingLeft(f"has no {content}", where=str(path), remedy=remedy)
        return rows

    def _describe_leakage(self, parts: Mapping[str, Interactions]) -> Leakage:
        """Return the error that lists the first pairs that are in two files."""
        names = {part: path.name for part, path in self._list_paths().items()}
        leaks = []
        for part, other_part in combinations(parts, 2):
            rows = parts[other_part]
            leaked = np.flatnonzero(np.isin(encode_pairs(rows), encode_pairs(parts[part])))
            if leaked.size:
                files = f"{names[part]} and {names[other_part]}"
                first = rows.take(leaked[: MAX_LISTED + 1])
                users, items = first.user_ids.ids[first.users], first.item_ids.ids[first.items]
                pairs = _list_first([str(pair) for pair in zip(users, items, strict=True)])
                leaks.append(f"{leaked.size:,} (user, item) pairs stand in {files}: {pairs}")
        remedy = "remove them from one of the files"
        return Leakage("; ".join(leaks), where="split", remedy=remedy)


def _validate_queries(
    test: Interactions, train_ids: Vocabulary, dataset_ids: Vocabulary, path: Path
) -> None:
    """Warn of queries of judgements without training rows; refuse them if all are unknown."""
    queries = test.user_ids.ids
    untrained = queries[train_ids.find(queries) < 0]
    if untrained.size == queries.size and (dataset_ids.find(queries) < 0).all():
        message = f"none of its {queries.size:,} queries is a user: the first is {queries[0]!r}"
        remedy = suggest(queries[0], [*train_ids.ids, *dataset_ids.ids])
        raise UnknownIdentifier(message, where=str(path), remedy=remedy)
    if untrained.size:
        count = f"{untrained.size:,} of {queries.size:,} queries"
        names = _list_first([repr(query) for query in untrained])
        warn(f"{path.name}: {count} have no row in the training file: {names}")


def _list_first(texts: list[str]) -> str:
    return ", ".join(texts[:MAX_LISTED]) + (", ..." if len(texts) > MAX_LISTED else "")


def _extend(ids: Vocabulary, part_ids: list[Vocabulary]) -> Vocabulary:
    """Return all identifiers in natural order; ``ids`` itself if the parts add none."""
    candidates = np.concatenate([vocabulary.ids for vocabulary in part_ids])
    new_ids = candidates[ids.find(candidates) < 0]
    return Vocabulary.of([*ids.ids, *new_ids]) if new_ids.size else ids
