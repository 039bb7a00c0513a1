"""The queries to evaluate on: users of the dataset, or the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pandas as pd
from annotated_types import Gt, Le

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownColumn,
    WrongType,
)
from recbias.core.protocols import InputFile
from recbias.core.queries.conditions import list_condition_columns, match_rows
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.data.datasets.tables import refuse_repeated_ids
from recbias.formats.delimited import require_every_line
from recbias.formats.encode_ids import encode
from recbias.formats.table_settings import TableSettings
from recbias.formats.tables import TableColumns, list_file_columns, read_file

TABLE = TableColumns(needed={"query_id": "id"}, others=True)


HISTORY_LENGTH = "history_length"
"""The label of users with the number of their training interactions."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """Evaluate on the users of the dataset: all of them, or those that satisfy a condition.

    The queries are in the order of the users, and their labels are the columns of the users
    table and ``history_length``, the number of training interactions, unless the table has such a
    column itself. Models are trained on all users, whatever the queries.

    Args:
        where: A condition on the users' columns, as in ``age < 18 and gender == 'F'``: columns,
            numbers and quoted text, joined by ``<, <=, >, >=, ==, !=, in [..], and, or, not``. A
            comparison with a missing cell is neither true nor false.
        sample: Number of those users to sample at random; all of them, with a warning, if there
            are fewer.
        folds: Number of disjoint samples of that size. Each is a fold of the results. The models
            are trained once, on the interactions of all users. ``--limit`` takes the first users
            of each sample.

    Raises:
        Contradiction: There are ``folds`` without ``sample``.
        OutOfRange: There are too few users for disjoint samples.
        WrongType: ``where`` is not a condition, or compares text with a number.
        UnknownColumn: The users have no such column, or there is no users table.
        NothingLeft: No user satisfies the condition.
    """

    where: str | None = None
    sample: Annotated[int, Gt(0)] | None = None
    folds: Annotated[int, Gt(0), Le(1_000)] = 1

    def __post_init__(self) -> None:
        if self.folds > 1 and self.sample is None:
            message = f"{self.folds} disjoint samples of users need their size"
            raise Contradiction(message, where="folds", remedy="add sample: 1000, or remove folds")
        if self.where is None:
            return
        try:
            list_condition_columns(self.where)
        except WrongType as error:
            raise WrongType(error.message, where="where", remedy=error.remedy) from error

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each selected user; those of several folds one after another."""
        users = self._select_users(dataset)
        if self.sample is not None:
            users = self._sample_users(users, self.sample, rng)
        ids = dataset.user_ids.take(users)
        return Queries(ids, describe_users(dataset).take(users, ids), users.astype(np.int32))

    def _sample_users(self, users: AnyArray, size: int, rng: np.random.Generator) -> AnyArray:
        """Return random samples of users without replacement, each in the order of the users."""
        if self.folds == 1 and size > users.size:
            warn(f"a sample of {size:,} was requested; all {users.size:,} users are used")
            return users
        if self.folds * size > users.size:
            message = (
                f"{self.folds} disjoint samples of {size:,} need {self.folds * size:,} users, "
                f"but there are {users.size:,}"
            )
            largest = users.size // self.folds
            remedy = f"sample: {largest} is the largest possible" if largest else "use fewer folds"
            raise OutOfRange(message, where="sample", remedy=remedy)
        samples = rng.permutation(users)[: self.folds * size].reshape(self.folds, size)
        return np.sort(samples, axis=1).ravel()

    def _select_users(self, dataset: Dataset) -> AnyArray:
        n = len(dataset.user_ids)
        if not n:
            raise NothingLeft("the dataset has no users")
        if self.where is None:
            return np.arange(n)
        if dataset.users is None and list_condition_columns(self.where) != {HISTORY_LENGTH}:
            message = f"{self.where!r} uses columns of the users, but there is no users table"
            raise UnknownColumn(message, remedy="add a users table, or remove where")
        described = describe_users(dataset)
        users = np.flatnonzero(match_rows(self.where, described))
        if not users.size:
            remedy = f"the users have the columns {', '.join(described.names)}"
            raise NothingLeft(f"none of the {n:,} users satisfies {self.where!r}", remedy=remedy)
        return users


@dataclass(frozen=True, kw_only=True)
class QueryTable(TableSettings):
    """Evaluate on the queries of your own table, in its order.

    A query whose identifier is a user of the dataset has that user's history; any other query has
    none, and only models that read lists from files can answer it.

    Args:
        path: A ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` file with ``query_id`` and
            any label columns.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: It has no column ``query_id``, or none that ``columns`` or ``types`` names.
        MalformedLine: A line is malformed, a cell does not have the type of its column, or a
            query has two rows.
        Contradiction: Two columns have the same name after renaming.
        NothingLeft: It has no rows.
    """

    path: InputFile

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return the queries of the table."""
        self.refuse_unknown_columns(list_file_columns(self.path))
        with require_every_line():
            table = read_file(self.path, replace(TABLE, renamed=self.columns))
        if not len(table.rows):
            remedy = "add a row below the names of the columns"
            raise NothingLeft("has no queries", where=str(self.path), remedy=remedy)
        columns = table.rows.table
        vocabulary, (codes,) = encode(columns["query_id"])
        refuse_repeated_ids(table, "query_id", vocabulary, codes)
        ids = Vocabulary(np.array(columns["query_id"].to_pylist(), dtype=object))
        cells = pd.DataFrame(self.read_columns(table), range(len(ids)))
        users = dataset.user_ids.find(ids.ids)
        described = describe_users(dataset).take(users, ids).frame
        if HISTORY_LENGTH in described and HISTORY_LENGTH not in cells:
            cells[HISTORY_LENGTH] = described[HISTORY_LENGTH]
        labels = Attributes(ids, cells, "query")
        return Queries(ids, labels, users, unit="user" if (users >= 0).any() else "prompt")


def describe_users(dataset: Dataset) -> Attributes:
    """Return the users table with the column ``history_length``, unless it has one itself.

    Without interactions there is no such column.
    """
    ids = dataset.user_ids
    users = dataset.users or Attributes(ids, pd.DataFrame(index=range(len(ids))), "user")
    if HISTORY_LENGTH in users.frame or not len(dataset.interactions):
        return users
    counts = dataset.interactions.user_counts().astype(np.float64)
    frame = users.frame.reset_index(drop=True).assign(**{HISTORY_LENGTH: counts})
    return replace(users, frame=frame)
