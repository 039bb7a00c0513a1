"""Who is asked: users of the dataset, or the queries of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
from annotated_types import Gt

from recbias.core.arrays import AnyArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, NothingLeft, UnknownColumn, WrongType
from recbias.core.protocols import InputFile
from recbias.core.queries.conditions import list_condition_columns, match_rows
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.formats.encode_ids import encode, repeats
from recbias.formats.strict_tables import every_line
from recbias.formats.tables import Wanted, read_file, typed

TABLE = Wanted(needed={"query_id": "id"}, others=True)


@dataclass(frozen=True, kw_only=True)
class Users:
    """Ask the users of the dataset, all of them or those that meet a condition.

    The queries are in the order of the users, and their labels are the columns of the users
    table. All users are trained on, whoever is asked.

    Args:
        where: A condition on the users' columns, as in ``age < 18 and gender == 'F'``: columns,
            numbers and quoted text, joined by ``<, <=, >, >=, ==, !=, in [..], and, or, not``. A
            comparison with a missing cell is neither true nor false.
        sample: How many of those users are asked, drawn at random; all of them, with a warning,
            where there are fewer.

    Raises:
        WrongType: ``where`` is not a condition, or compares text with a number.
        UnknownColumn: The users have no such column, or there is no users table.
        NothingLeft: No user meets the condition.
    """

    where: str | None = None
    sample: Annotated[int, Gt(0)] | None = None

    def __post_init__(self) -> None:
        """Refuse what is not a condition, before any data is read."""
        if self.where is None:
            return
        try:
            list_condition_columns(self.where)
        except WrongType as error:
            raise WrongType(error.message, where="where", remedy=error.remedy) from error

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return a query for each user asked."""
        users = self._drawn(self._meeting(dataset), rng)
        ids = dataset.user_ids.take(users)
        labels = Attributes(ids, pd.DataFrame(index=range(users.size)), "user")
        if dataset.users is not None:
            labels = dataset.users.take(users, ids)
        return Queries(ids, labels, users.astype(np.int32))

    def _meeting(self, dataset: Dataset) -> AnyArray:
        """Return the codes of the users who meet the condition."""
        n = len(dataset.user_ids)
        if not n:
            raise NothingLeft("there are no users to ask")
        if self.where is None:
            return np.arange(n)
        if dataset.users is None:
            found = f"{self.where!r} asks for columns of the users, and there is no users table"
            raise UnknownColumn(found, remedy="name a users table, or leave where out")
        meeting = np.flatnonzero(match_rows(self.where, dataset.users))
        if not meeting.size:
            remedy = f"the users have the columns {', '.join(dataset.users.names)}"
            raise NothingLeft(f"none of the {n:,} users meets {self.where!r}", remedy=remedy)
        return meeting

    def _drawn(self, users: AnyArray, rng: np.random.Generator) -> AnyArray:
        if self.sample is None:
            return users
        if self.sample > users.size:
            warn(f"a sample of {self.sample:,} was asked for; all {users.size:,} users are asked")
        return np.sort(rng.permutation(users)[: self.sample])


@dataclass(frozen=True, kw_only=True)
class QueryTable:
    """Ask the queries of a table of your own, in its order.

    A query whose identifier is a user of the dataset is asked with that user's history; any other
    has none, and only lists made elsewhere can answer it.

    Args:
        path: A ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` file with ``query_id`` and
            any label columns.

    Raises:
        MissingFile: The file is not there.
        UnknownColumn: It has no column ``query_id``.
        MalformedLine: A line does not fit, or a query has two rows.
        NothingLeft: It has no rows.
    """

    path: InputFile

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return the queries of the table."""
        with every_line():
            table = read_file(self.path, TABLE)
        if not len(table.rows):
            raise NothingLeft("has no queries", where=str(self.path))
        columns = table.rows.table
        _, (codes,) = encode(columns["query_id"])
        first, again = repeats(codes)
        written = np.array(columns["query_id"].to_pylist(), dtype=object)
        if again >= 0:
            found = f"query_id {written[again]!r} has a row already"
            remedy = f"keep one row; the other is at {table.where(first)}"
            raise MalformedLine(found, where=table.where(again), remedy=remedy)
        ids = Vocabulary(written)
        cells: dict[str, Any] = {
            name: typed(columns[name]) for name in columns.column_names if name != "query_id"
        }
        labels = Attributes(ids, pd.DataFrame(cells, index=range(len(ids))), "query")
        users = dataset.user_ids.find(written)
        return Queries(ids, labels, users, unit="user" if (users >= 0).any() else "prompt")
