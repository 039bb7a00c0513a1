"""Recommendation lists of other tools, read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract, MalformedLine
from recbias.core.outputs.evidence import mark_contained
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.formats.lists import (
    ListRows,
    RowOrder,
    check_name,
    order_rows,
    read_rows,
    validate_queries,
)
from recbias.models.given.file_cache import read_once


@dataclass(frozen=True, kw_only=True)
class GivenLists:
    """Measure the recommendation lists of another tool, read from a file.

    Identifiers are read exactly as written; the name of a text file may end in ``.gz``. Layouts:

    - ``table``: CSV, TSV or Parquet with one row per item and the columns ``query_id``,
      ``item_id``, and ``rank``, ``score`` or both. Names used by other tools are accepted
      (``user_id``, ``userId``, ``user``, ``q_id``; ``item``, ``doc_id``; ``prediction``,
      ``rating``). Other columns are ignored.
    - ``trec``: a TREC run: query, Q0, item, rank, score, tag.
    - ``elliot``: user, item and score, separated by tabs, without a header.
    - ``recbole``: a table with optional types in the header (``user_id:token``).
    - ``ranx``: JSON, ``{query: {item: score}}`` or ``{query: [item, ...]}``.
    - ``lenskit``: the output of ``ItemListCollection.save_parquet``, or a table.

    ``auto`` detects the layout by the file name (``.trec`` and ``.run`` are ``trec``, ``.json`` is
    ``ranx``, Parquet with a column ``items`` of lists is ``lenskit``), then by the first line:
    names with types are ``recbole``; three tab-separated cells with a number in the third,
    ``elliot``; six cells with numbers in the fourth and fifth, ``trec``; otherwise ``table``.

    Lists are ordered by rank if there are ranks; these may start at any number and have gaps.
    Otherwise they are ordered by descending score; ties are ordered by item identifier (as numbers
    if all are whole numbers, else as text) in a ``table``, and by the order of the file in the
    layouts of Elliot, RecBole and ranx. If there are both, scores must not increase with the rank.
    Rows with a score of minus infinity, by which tools mask items, are excluded.

    A query without a list in the file has an empty list, and lists of other queries are excluded.
    An item that is not in the dataset keeps its rank and is never relevant. Warnings report the
    number of each.

    If a table has a column ``dataset``, its rows are used only for the dataset with that label;
    otherwise all rows are used for every dataset.

    Args:
        path: The file.
        layout: The layout of the file.
        seen: Whether an item of the query's own training rows is an error (``refuse``) or keeps
            its rank (``keep``).

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column is missing.
        WrongType: The file name does not fit a layout.
        MalformedLine: A line does not fit the layout, two columns match the same role, a rank or
            score is not a number, or the file holds no list.
        UnknownIdentifier: No query of the file is a query of the run or a user of the dataset, or
            no row belongs to the dataset.
        BrokenContract: A list repeats an item or a rank, or has a score of NaN, scores that
            increase with the rank, or an item of the query's own history.

    >>> from pathlib import Path
    >>> GivenLists(path=Path("mine.csv")).seen
    'refuse'
    """

    provides: ClassVar[frozenset[Output]] = frozenset({"lists"})
    needs: ClassVar[frozenset[str]] = frozenset()
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow",)

    path: InputFile
    layout: Literal["auto", "table", "trec", "elliot", "recbole", "ranx", "lenskit"] = "auto"
    seen: Literal["refuse", "keep"] = "refuse"

    def __post_init__(self) -> None:
        check_name(self.path, self.layout)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedLists:
        """Read and validate the file; nothing is trained."""
        rows, order = order_rows(self._read_rows(), data.dataset)
        counts = np.bincount(rows.queries, minlength=len(rows.query_ids))
        return FittedLists(rows, order, np.concatenate([[0], np.cumsum(counts)]), self.seen)

    def check_files(self, datasets: Sequence[str]) -> None:
        """Validate the rows of each dataset."""
        rows = self._read_rows()
        for label in datasets if rows.datasets else datasets[:1]:
            order_rows(rows, label)

    def _read_rows(self) -> ListRows:
        rows = read_once(read_rows, self.path, self.layout)
        if not len(rows.query_ids):
            remedy = "add one row per item of each list"
            raise MalformedLine("the file holds no list", where=str(self.path), remedy=remedy)
        return rows


@dataclass(frozen=True, eq=False)
class FittedLists:
    """The lists of a file.

    Args:
        rows: The rows of the file.
        order: The rows sorted by query and rank, ``int64[n]``.
        starts: The start of the list of each query of the file in ``order``, ``int64[q + 1]``.
        seen: Whether an item of the query's own training rows is an error.
    """

    rows: ListRows
    order: RowOrder
    starts: RowOrder
    seen: Literal["refuse", "keep"]

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the first ``k`` items of the list of each query; an empty list if it has none."""
        validate_queries(self.rows, queries, data)
        file_rows = self._find_rows(queries, k)
        codes, unknown = self._encode_items(data)
        items = np.where(file_rows >= 0, _take_clipped(codes[self.rows.items], file_rows), -1)
        scores = np.full(items.shape, np.nan, dtype=np.float32)
        if self.rows.scores is not None:
            scores[file_rows >= 0] = self.rows.scores[file_rows[file_rows >= 0]]
        lists = RankedLists(items.astype(np.int32), scores, self.rows.item_ids.ids[unknown])
        if self.seen == "refuse" and len(data.train):
            self._refuse_seen(lists, file_rows, queries, data)
        return lists

    def _find_rows(self, queries: Queries, k: int) -> RowOrder:
        """Return the row of the file at each rank, ``int64[q, k]``; -1 beyond the end."""
        codes = self.rows.query_ids.find(queries.ids.ids)
        lengths = np.where(codes >= 0, np.diff(self.starts, append=0)[codes], 0)
        ranks = np.arange(k)
        positions = np.append(self.starts[:-1], 0)[codes][:, None] + ranks
        self._warn_about_queries(codes)
        return np.where(ranks < lengths[:, None], _take_clipped(self.order, positions), -1)

    def _warn_about_queries(self, codes: Codes) -> None:
        name = self.rows.path.name
        n_missing = int((codes < 0).sum())
        if n_missing:
            warn(f"{name} has no list for {n_missing:,} of {codes.size:,} queries: empty lists")
        n_excluded = len(self.rows.query_ids) - np.unique(codes[codes >= 0]).size
        if n_excluded:
            warn(f"{name} has lists for {n_excluded:,} queries that are not in the run: excluded")

    def _encode_items(self, data: TrainingData) -> tuple[Codes, RowOrder]:
        """Return the code of each item of the file, and the items that are not in the dataset."""
        codes = data.train.item_ids.find(self.rows.item_ids.ids)
        unknown = np.flatnonzero(codes < 0)
        codes[unknown] = data.train.n_items + np.arange(unknown.size)
        if unknown.size:
            name = self.rows.path.name
            warn(f"{name}: {unknown.size:,} of {codes.size:,} items are not in the dataset")
        return codes, unknown

    def _refuse_seen(
        self, lists: RankedLists, file_rows: RowOrder, queries: Queries, data: TrainingData
    ) -> None:
        histories = data.train.binary[np.maximum(queries.users, 0)]
        is_seen = mark_contained(histories, lists) & (queries.users >= 0)[:, None]
        if is_seen.any():
            row = int(file_rows[is_seen].min())
            item = self.rows.item_ids.ids[self.rows.items[row]]
            problem = (
                f"item {item!r} is in the query's own training rows "
                f"({int(is_seen.sum()):,} such items in {int(is_seen.any(axis=1).sum()):,} lists)"
            )
            remedy = "make the lists on the training set of this split, or set seen: keep"
            raise BrokenContract(problem, where=self.rows.place(row), remedy=remedy)


def _take_clipped(values: AnyArray, positions: RowOrder) -> AnyArray:
    """Return the values at the positions, which are clipped to the array; -1 if it is empty."""
    if not values.size:
        return np.full(positions.shape, -1, dtype=np.int64)
    return values[np.clip(positions, 0, values.size - 1)]
