"""Your own files: the dataset ``tables``, the queries ``table`` and the split ``given``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from annotated_types import Gt

from recbias.core.context import warn
from recbias.core.dataset import (
    Attributes,
    Codes,
    Dataset,
    Interactions,
    Queries,
    Reviews,
    Split,
    Vocabulary,
    count_distinct,
    encode_pairs,
)
from recbias.core.errors import Contradiction, Leakage, MalformedLine, NothingLeft
from recbias.core.plugins import InputFile
from recbias.data.filters_queries import HISTORY_LENGTH, describe_users
from recbias.formats.delimited import BadLines, Table
from recbias.formats.identifiers import (
    align_columns,
    check_ids,
    encode,
    list_some,
    question_ids,
)
from recbias.formats.interactions import (
    InteractionLayout,
    detect_layout,
    is_blank,
    question_times,
    read_interactions,
    read_qrels,
    select_relevant,
    to_seconds,
)
from recbias.formats.table_settings import TableSettings
from recbias.formats.tables import (
    TableColumns,
    list_file_columns,
    read_file,
    refuse_unknown,
)
from recbias.formats.text_files import require_file, shorten

INTERACTIONS = TableColumns(
    needed={"user_id": "id", "item_id": "id"}, optional={"rating": "float32", "timestamp": "any"}
)
_USERS = TableColumns(needed={"user_id": "id"}, others=True)
_ITEMS = TableColumns(needed={"item_id": "id"}, others=True)
_REVIEWS = TableColumns(needed={"user_id": "id", "item_id": "id", "text": "any"})
_QUERIES = TableColumns(needed={"query_id": "id"}, others=True)
_Reader = Callable[..., Table]


@dataclass(frozen=True, kw_only=True)
class Tables(TableSettings):
    """Your own data: tables of interactions, items, users and reviews; all are optional.

    Tables are ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet``, in UTF-8. Identifiers are
    kept exactly as written. The users and items of the dataset are those of the tables of
    interactions, users and items together.

    Reviews by other users or of other items are excluded and counted. A model learns from the
    reviews whose user has an interaction with the item in the training part. Without a table of
    interactions, the reviews are the interactions, each with the value 1, and their users and
    items are those of the dataset.

    Interactions may also be a file of RecBole, whose header names types (``user_id:token``), or a
    ``.tsv``, ``.txt`` or ``.inter`` file without a header, whose layout is detected by its first
    lines: ``elliot`` (user, item, rating and optionally timestamp) or ``lightgcn`` (a user and the
    user's items in each line).

    Args:
        interactions: ``user_id``, ``item_id`` and optionally ``rating`` and ``timestamp`` (seconds
            since 1970, or ISO 8601). Without a rating the value of each row is 1.
        items: ``item_id`` and any columns: a column of numbers is numeric, any other is text, in
            which ``a|b|c`` holds several values. Codes with leading zeros are text.
        users: ``user_id`` and any columns, as for items.
        reviews: ``user_id``, ``item_id`` and ``text``; an empty text is an empty review.
        bad_lines: ``error`` stops at a malformed line, ``skip`` skips and counts it.
        layout: The layout of interactions without a header if several fit.

    Raises:
        MissingFile: A table does not exist.
        UnknownColumn: A table lacks an identifier column, or the reviews lack ``text``; or no
            table has a column that ``columns`` or ``types`` names.
        MalformedLine: A row is malformed, a cell does not have the type of its column, or an item
            or user has two rows.
        Contradiction: Two columns have the same name after renaming, or a setting has no table
            to act on.
        AmbiguousLayout: Several layouts fit the interactions.
        UnknownIdentifier: No row of the users or items is of the interactions.
        NothingLeft: Every review is by a user or of an item that the other tables lack.
    """

    interactions: InputFile | None = None
    items: InputFile | None = None
    users: InputFile | None = None
    reviews: InputFile | None = None
    bad_lines: BadLines = "error"
    layout: InteractionLayout = "auto"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        parts = {
            "train": self.interactions or self.reviews,
            "items": self.items,
            "users": self.users,
            "reviews": self.reviews,
        }
        return frozenset(name for name, path in parts.items() if path is not None)

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        paths = (self.interactions, self.items, self.users, self.reviews)
        return [require_file(path) for path in paths if path is not None]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the tables."""
        self._refuse_idle()
        self.check_settings(self.files(data), (self.users, self.items))
        read_rows = partial(read_interactions, layout=self.layout)
        interactions = self._read(self.interactions, INTERACTIONS, read_rows)
        users, items = self._read(self.users, _USERS), self._read(self.items, _ITEMS)
        reviews = self._read(self.reviews, _REVIEWS)
        times = None
        if interactions is not None and "timestamp" in interactions.columns:
            interactions, times = _parse_times(interactions, self.bad_lines)
        rows = reviews if interactions is None else interactions
        user_ids, row_users, user_codes = _encode_ids(rows, users, "user_id")
        item_ids, row_items, item_codes = _encode_ids(rows, items, "item_id")
        tables = [table for table in (interactions, users, items, reviews) if table is not None]
        values = np.ones(row_users.size, dtype=np.float32)
        if rows is not None and "rating" in rows.columns:
            values = rows.numbers("rating")
        self.warn_of_unused((users, items), interactions)
        return Dataset(
            Interactions(row_users, row_items, values, times, user_ids, item_ids),
            self._build_attributes(users, user_codes, user_ids),
            self._build_attributes(items, item_codes, item_ids),
            _select_reviews(reviews, user_ids, item_ids),
            counts={"bad_lines": sum(table.bad_lines for table in tables)},
        )

    def _refuse_idle(self) -> None:
        """Raise Contradiction if a setting has no table to act on."""
        idle = ["layout"] if self.interactions is None else []
        if not self.gives():
            idle += ["columns", "types", "missing", "clean", "separator", "bad_lines"]
        for name in idle:
            if getattr(self, name) != getattr(Tables(), name):
                message = "has no effect: the dataset has no table that it acts on"
                remedy = "leave it out; the files of a split, of lists and of queries are read as"
                remedy += " their own settings say, and their lines are not skipped"
                raise Contradiction(message, where=name, remedy=remedy)

    def _read(
        self, path: Path | None, columns: TableColumns, read: _Reader = read_file
    ) -> Table | None:
        if path is None:
            return None
        columns = replace(columns, renamed=self.columns)
        table = read(path, columns, bad_lines=self.bad_lines)
        if not len(table):
            warn(f"{path.name} has no rows")
        return table

    def _build_attributes(
        self, table: Table | None, codes: Codes, ids: Vocabulary
    ) -> Attributes | None:
        """Return the columns of users or items in the order of the identifiers."""
        if table is None:
            return None
        key = table.columns[0].removesuffix("_id")
        return align_columns(codes, self.read_columns(table), ids, key)


def _parse_times(table: Table, bad_lines: BadLines) -> tuple[Table, npt.NDArray[np.int64] | None]:
    """Return the rows with a time, and the times; None if the column is empty."""
    stamps = table["timestamp"]
    if is_blank(stamps):
        return table, None
    times, is_wrong = to_seconds(stamps)
    if question := question_times(times[~is_wrong]):
        shown = shorten(stamps[0].as_py())
        message = f"the timestamp {shown} is not in seconds since 1970: {question}"
        remedy = "write seconds (milliseconds divided by 1000), or dates as in 2020-11-15"
        raise MalformedLine(message, where=table.place(0), remedy=remedy)
    problem = "timestamp is neither seconds since 1970 nor an ISO 8601 date"
    return table.without(is_wrong, problem, bad_lines), times[~is_wrong]


def _encode_ids(
    rows: Table | None, attributes: Table | None, name: str
) -> tuple[Vocabulary, Codes, Codes]:
    """Return the identifiers of both tables, and the codes of the rows of each."""
    empty = pa.array([], pa.string())
    columns = [empty if table is None else table[name] for table in (rows, attributes)]
    ids, (row_codes, codes) = encode(*columns)
    noun = f"{name.removesuffix('_id')}s"
    if source := rows or attributes:
        question_ids(ids.ids, noun, source.path.name)
    if attributes is not None:
        attributes.refuse_repeats(
            codes, lambda row: f"{name} {ids.ids[codes[row]]!r} has two rows"
        )
        of_rows = ids.take(np.unique(row_codes))
        check_ids(ids.ids[codes], of_rows, noun, str(attributes.path), may_lack=True)
    return ids, row_codes, codes


def _select_reviews(
    table: Table | None, user_ids: Vocabulary, item_ids: Vocabulary
) -> Reviews | None:
    if table is None:
        return None
    if not pa.types.is_string(table["text"].type):
        message, where = "is a column of numbers, not of text", f"{table.path}: text"
        raise MalformedLine(message, where=where, remedy="write the reviews as text")
    reviews = match_reviews(table.path.name, table.cells, user_ids, item_ids)
    if len(table) and not len(reviews):
        message = "every review is by a user or of an item that the other tables lack"
        remedy = "compare the identifiers, or remove interactions to use the reviews instead"
        for ids, name in ((user_ids, "user_id"), (item_ids, "item_id")):
            remedy = ids.compare_spelling(pc.unique(table[name]).to_pylist()) or remedy
        raise NothingLeft(message, where=f"{table.path}", remedy=remedy)
    return reviews


def match_reviews(name: str, rows: Any, user_ids: Vocabulary, item_ids: Vocabulary) -> Reviews:
    """Return the reviews of a file that are by the users, and of the items, of a dataset.

    ``rows`` are the columns ``user_id``, ``item_id`` and ``text``.
    """
    texts, *ids = (
        np.asarray(pc.fill_null(rows[name], "").to_numpy(), dtype=object)
        for name in ("text", "user_id", "item_id")
    )
    users, items = user_ids.find(ids[0]), item_ids.find(ids[1])
    is_known = (users >= 0) & (items >= 0)
    n_excluded = int(np.count_nonzero(~is_known))
    if n_excluded and is_known.any():
        warn(f"{name}: excluded {n_excluded:,} review(s) by other users or of other items")
    return Reviews(users[is_known], items[is_known], texts[is_known])


# ---- queries ----


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
        UnknownIdentifier: No query is a user of the dataset, which writes them otherwise.
    """

    path: InputFile

    def ask(self, dataset: Dataset, rng: np.random.Generator) -> Queries:
        """Return the queries of the table."""
        self.check_settings([self.path], [self.path])
        table = read_file(self.path, replace(_QUERIES, renamed=self.columns))
        if not len(table):
            remedy = "add a row below the names of the columns"
            raise NothingLeft("has no queries", where=str(self.path), remedy=remedy)
        _, (codes,) = encode(table["query_id"])
        ids = Vocabulary(table.texts("query_id"))
        table.refuse_repeats(codes, lambda row: f"query_id {ids.ids[row]!r} has two rows")
        cells = pd.DataFrame(self.read_columns(table), range(len(ids)))
        self.warn_of_unused([table])
        where = str(self.path)
        check_ids(ids.ids, dataset.user_ids, "queries", where, may_lack=True, is_needed=False)
        users = dataset.user_ids.find(ids.ids)
        described = describe_users(dataset).take(users, ids).frame
        if HISTORY_LENGTH in described and HISTORY_LENGTH not in cells:
            cells[HISTORY_LENGTH] = described[HISTORY_LENGTH]
        labels = Attributes(ids, cells, "query")
        return Queries(ids, labels, users, unit="user" if (users >= 0).any() else "prompt")


# ---- the split into files ----


_MAX_LISTED = 3

_GRADES = {"label", "grade", "relevance", "relevant", "clicked", "click"}
"""Columns that may say how relevant a row is, and are read by ``columns`` only."""


@dataclass(frozen=True, kw_only=True)
class GivenSplit:
    """Train and test on the interactions of your own files instead of those of the dataset.

    Files are ``.csv``, ``.tsv`` (also with ``.gz``) or ``.parquet`` with ``user_id``, ``item_id``
    and optionally ``rating`` and ``timestamp``, or files of Elliot, LightGCN and RecBole, read as
    by the dataset ``tables``. Identifiers are kept as written and matched with the tables of the
    dataset; identifiers that the dataset lacks are added. A pair that the test or the validation
    file repeats counts once.

    Any part may be relevance judgements: TREC qrels (``.qrels``, ``.qrel``, ``.trec``, or other
    text of query, 0, item, grade) or JSON (``.json``: ``{query: {item: grade}}``), also with
    ``.gz``. The rows are the items with a grade of at least ``least_grade``. In a table, the
    ratings of the test and validation part are the grades; the training part has all of its rows.

    Args:
        train: The training file.
        test: The test file.
        validation: The validation file; None for no validation part.
        least_grade: The lowest grade or rating that is relevant; None for 1 in judgements, and
            for every row of a table.
        columns: New names of columns, by their names in the files: ``{customer: user_id}``.
        layout: The layout of files without a header that several layouts fit.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: A file lacks ``user_id`` or ``item_id``, or none has a column that
            ``columns`` names.
        MalformedLine: A line is malformed.
        NothingLeft: A file has no rows.
        Leakage: A (user, item) pair is in two of the files.
        AmbiguousLayout: Several layouts fit a file.
        UnknownIdentifier: The dataset has no user or no item of the training file; or another
            file has no user and no item of either, or spells all otherwise.
    """

    folds: ClassVar[int] = 1

    train: InputFile
    test: InputFile
    validation: InputFile | None = None
    least_grade: Annotated[float, Gt(0)] | None = None
    columns: dict[str, str] = field(default_factory=dict, hash=False)
    layout: InteractionLayout = "auto"

    def gives(self) -> frozenset[str]:
        """Return the parts that the split makes, including training interactions."""
        return frozenset(self._list_paths())

    def split(self, dataset: Dataset, fold: int, rng: np.random.Generator) -> Split:
        """Return the split of the files."""
        paths = self._list_paths()
        layouts = {name: detect_layout(path, self.layout) for name, path in paths.items()}
        if self.layout not in {"auto", *layouts.values()}:
            message, remedy = f"no file has the layout {self.layout}", "remove it"
            raise Contradiction(message, where="layout", remedy=remedy)
        if self.columns:
            tables = [path for name, path in paths.items() if layouts[name] == "auto"]
            known = [name for path in tables for name in list_file_columns(path)]
            refuse_unknown("columns", self.columns, known)
        parts = {name: self._read(name, path, layouts[name], rng) for name, path in paths.items()}
        self._check_ids(dataset, parts)
        queries = parts["test"].user_ids.ids
        untrained = queries[parts["train"].user_ids.find(queries) < 0]
        if untrained.size and (layouts["test"] == "qrels" or untrained.size == queries.size):
            count = f"{untrained.size:,} of {queries.size:,} queries"
            listed = list_some(untrained)
            warn(f"{self.test.name}: {count} have no row in the training file: {listed}")
        user_ids = _extend(dataset.user_ids, [rows.user_ids for rows in parts.values()])
        item_ids = _extend(dataset.item_ids, [rows.item_ids for rows in parts.values()])
        parts = {name: rows.recode(user_ids, item_ids) for name, rows in parts.items()}
        try:
            return Split(parts["train"], parts["test"], parts.get("validation"))
        except Leakage as error:
            raise self._describe_leakage(parts) from error

    def _list_paths(self) -> dict[str, Path]:
        paths = {"train": self.train, "test": self.test, "validation": self.validation}
        return {name: path for name, path in paths.items() if path is not None}

    def _check_ids(self, dataset: Dataset, parts: Mapping[str, Interactions]) -> None:
        """Compare the identifiers of the training file with the dataset, of others with both."""
        train, users, items = parts["train"], dataset.user_ids, dataset.item_ids
        for part, path in self._list_paths().items():
            own, needs_users = parts[part], True
            if part != "train":
                users, items = _extend(users, [train.user_ids]), _extend(items, [train.item_ids])
                has_item = items.has_any(own.item_ids.ids)
                needs_users = len(train.user_ids) > 1 and not has_item
            is_swapped = users.has_any(own.item_ids.ids) and items.has_any(own.user_ids.ids)
            remedy = "its columns of users and items look swapped" * is_swapped
            check = partial(check_ids, where=str(path), may_lack=True, remedy=remedy)
            check(own.user_ids.ids, users, "users", is_needed=needs_users)
            check(own.item_ids.ids, items, "items", is_needed=part == "train")

    def _read(
        self, part: str, path: Path, layout: InteractionLayout, rng: np.random.Generator
    ) -> Interactions:
        grade = self.least_grade
        if layout == "qrels":
            grade = 1.0 if grade is None else grade
            rows = read_qrels(path, grade)
        else:
            grade = None if part == "train" else grade
            may_have_header = layout == "auto" and (self.columns or part != "train")
            present = set(list_file_columns(path)) if may_have_header else set()
            columns = {name: new for name, new in self.columns.items() if name in present}
            table = Tables(interactions=path, columns=columns, layout=layout)
            rows = table.load(Path(), rng).interactions
            unread = (
                sorted(present & _GRADES) if "rating" not in present | {*columns.values()} else []
            )
            if unread:
                remedy = (
                    f"columns: {{{unread[0]}: rating}} reads it, and least_grade: 1 leaves out 0"
                )
                warn(f"{path.name}: every row is relevant, whatever its {unread[0]}: {remedy}")
            if grade is not None:
                rows = select_relevant(rows, grade, path)
            elif part != "train" and (n_none := int(np.count_nonzero(rows.values <= 0))):
                counted = f"{n_none:,} of {len(rows):,} ratings are 0 or less"
                remedy = "least_grade: 1 leaves them out"
                warn(f"{path.name}: {counted} and count as relevant: {remedy}")
        if not len(rows):
            content, remedy = "interactions", "add rows, or name another file"
            if grade is not None:
                content = f"item of grade {grade:g} or more"
                remedy = "lower least_grade; a row without a rating has the grade 1"
            raise NothingLeft(f"has no {content}", where=str(path), remedy=remedy)
        is_tested = path != self.train
        if is_tested and (n_repeats := len(rows) - count_distinct(encode_pairs(rows))):
            warn(f"{path.name}: {n_repeats:,} rows repeat a user and an item and count once")
        return rows

    def _describe_leakage(self, parts: Mapping[str, Interactions]) -> Leakage:
        """Return the error that lists the first pairs that are in two files."""
        names, leaks = {part: path.name for part, path in self._list_paths().items()}, []
        for part, other_part in combinations(parts, 2):
            rows = parts[other_part]
            leaked = np.flatnonzero(np.isin(encode_pairs(rows), encode_pairs(parts[part])))
            if leaked.size:
                first = rows.take(leaked[:_MAX_LISTED])
                users, items = first.user_ids.ids[first.users], first.item_ids.ids[first.items]
                pairs = ", ".join(map(str, zip(users, items, strict=True)))
                more = ", ..." if leaked.size > _MAX_LISTED else ""
                files = f"{names[part]} and {names[other_part]}"
                count = f"{leaked.size:,} (user, item) pairs stand in {files}"
                leaks.append(f"{count}: {pairs}{more}")
        remedy = "remove them from one of the files"
        return Leakage("; ".join(leaks), remedy=remedy)


def _extend(ids: Vocabulary, part_ids: list[Vocabulary]) -> Vocabulary:
    """Return all identifiers in natural order; ``ids`` itself if the parts add none."""
    candidates = np.concatenate([vocabulary.ids for vocabulary in part_ids])
    new_ids = candidates[ids.find(candidates) < 0]
    return Vocabulary.of([*ids.ids, *new_ids]) if new_ids.size else ids
