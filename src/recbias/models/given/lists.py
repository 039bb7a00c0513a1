"""Lists made elsewhere, measured as if one of our models had made them."""

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
from recbias.formats.lists.detect import check_name
from recbias.formats.lists.order import RowOrder, order_rows
from recbias.formats.lists.read import read_rows
from recbias.formats.lists.rows import ListRows
from recbias.formats.lists.unknown_ids import validate_queries
from recbias.models.given.file_cache import read_once


@dataclass(frozen=True, kw_only=True)
class GivenLists:
    """Measure lists that were made elsewhere, read from a file.

    The file is read as the tool wrote it, ids as written; ``.gz`` may follow any name of text:

    - ``table``: CSV, TSV or Parquet with a row an item: the columns ``query_id``, ``item_id`` and
      ``rank``, ``score`` or both, or what other tools call them (``user_id``, ``userId``,
      ``user``, ``q_id``; ``item``, ``doc_id``; ``prediction``, ``rating``). Others are ignored.
    - ``trec``: a TREC run: query, Q0, item, rank, score, tag.
    - ``elliot``: user, item and score between tabs, without a header.
    - ``recbole``: a table whose names may have types (``user_id:token``).
    - ``ranx``: JSON, ``{query: {item: score}}`` or ``{query: [item, ...]}``.
    - ``lenskit``: what ``ItemListCollection.save_parquet`` writes, or a table.

    ``auto`` goes by the name (``.trec`` and ``.run`` are ``trec``, ``.json`` is ``ranx``, Parquet
    with a column ``items`` of lists is ``lenskit``) and then by the first line: names with types
    are ``recbole``; three cells between tabs, the third a number, ``elliot``; six cells, the
    fourth and fifth numbers, ``trec``; else it is a ``table``.

    A list is ordered by rank where there is one; ranks only order, so they may start anywhere and
    have gaps. Without ranks it is ordered by falling score, ties by the natural order of the item
    ids (by number if all are whole numbers, else by text) in a ``table`` and by the order of the
    file in the layouts of Elliot, RecBole and ranx. With both, scores may not rise along the
    ranks. A score of minus infinity is how tools mask an item: such rows are left out.

    A query that the file lacks gets an empty list, and queries that were not asked are left out;
    both are counted in a warning. An item that the dataset lacks keeps its place and is never
    relevant; these too are counted.

    Where several datasets are measured, a column ``dataset`` of a table says by the label of which
    of them a list is: of each dataset only its own rows count. Without it all rows do.

    Args:
        path: The file.
        layout: How the file is written.
        seen: An item of the query's own training rows is an error (``refuse``) or stays in its
            place (``keep``).

    Raises:
        MissingFile: The file is not there.
        UnknownColumn: A column is absent.
        WrongType: The file's name does not say what it is.
        MalformedLine: A line does not fit the layout, two columns may be the same, or a rank or
            score is no number, or the file holds no list.
        UnknownIdentifier: No query of the file was asked or is a user of the dataset, or no row
            is of the dataset.
        BrokenContract: A list holds an item or a rank twice, a score of NaN, scores that rise
            along the ranks, or an item of the query's own history.

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
        """Refuse a file whose name is of no known kind."""
        check_name(self.path, self.layout)

    def fit(self, data: TrainingData, rng: np.random.Generator) -> FittedLists:
        """Read and check the file."""
        rows, order = order_rows(self._rows(), data.dataset)
        counts = np.bincount(rows.queries, minlength=len(rows.query_ids))
        return FittedLists(rows, order, np.concatenate([[0], np.cumsum(counts)]), self.seen)

    def check_files(self, datasets: Sequence[str]) -> None:
        """Raise what is wrong with the file, whatever is asked."""
        rows = self._rows()
        for label in datasets if rows.datasets else datasets[:1]:
            order_rows(rows, label)

    def _rows(self) -> ListRows:
        rows = read_once(read_rows, self.path, self.layout)
        if not len(rows.query_ids):
            remedy = "give it a row an item of each list"
            raise MalformedLine("the file holds no list", where=str(self.path), remedy=remedy)
        return rows


@dataclass(frozen=True, eq=False)
class FittedLists:
    """The lists of a file, each from its best item down.

    Args:
        rows: The rows of the file.
        order: The rows, list by list and from the best down, ``int64[n]``.
        starts: Where the list of each query of the file starts in ``order``, ``int64[q + 1]``.
        seen: What to do with an item of the query's own training rows.
    """

    rows: ListRows
    order: RowOrder
    starts: RowOrder
    seen: Literal["refuse", "keep"]

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the first ``k`` items of each query's list; an empty list where it has none."""
        validate_queries(self.rows, queries, data)
        file_rows = self._file_rows(queries, k)
        codes, outside = self._codes(data)
        items = np.where(file_rows >= 0, _at(codes[self.rows.items], file_rows), -1)
        scores = np.full(items.shape, np.nan, dtype=np.float32)
        if self.rows.scores is not None:
            scores[file_rows >= 0] = self.rows.scores[file_rows[file_rows >= 0]]
        lists = RankedLists(items.astype(np.int32), scores, self.rows.item_ids.ids[outside])
        if self.seen == "refuse" and len(data.train):
            self._refuse_seen(lists, file_rows, queries, data)
        return lists

    def _file_rows(self, queries: Queries, k: int) -> RowOrder:
        """Return the row of the file of each place, ``int64[q, k]``; -1 where there is none."""
        asked = self.rows.query_ids.find(queries.ids.ids)
        lengths = np.where(asked >= 0, np.diff(self.starts, append=0)[asked], 0)
        place = np.arange(k)
        wanted = np.append(self.starts[:-1], 0)[asked][:, None] + place
        self._count_queries(asked)
        return np.where(place < lengths[:, None], _at(self.order, wanted), -1)

    def _count_queries(self, asked: Codes) -> None:
        name = self.rows.path.name
        lacking = int((asked < 0).sum())
        if lacking:
            warn(f"{name} has no list for {lacking:,} of {asked.size:,} queries: they are empty")
        others = len(self.rows.query_ids) - np.unique(asked[asked >= 0]).size
        if others:
            warn(f"{name} has lists for {others:,} queries that were not asked: left out")

    def _codes(self, data: TrainingData) -> tuple[Codes, RowOrder]:
        """Return the dataset's code of each item of the file, and which items it lacks."""
        codes = data.train.item_ids.find(self.rows.item_ids.ids)
        outside = np.flatnonzero(codes < 0)
        codes[outside] = data.train.n_items + np.arange(outside.size)
        if outside.size:
            name, total = self.rows.path.name, codes.size
            warn(f"{name}: {outside.size:,} of {total:,} items are not in the dataset")
        return codes, outside

    def _refuse_seen(
        self, lists: RankedLists, file_rows: RowOrder, queries: Queries, data: TrainingData
    ) -> None:
        history = data.train.binary[np.maximum(queries.users, 0)]
        seen = mark_contained(history, lists) & (queries.users >= 0)[:, None]
        if seen.any():
            row = int(file_rows[seen].min())
            item = self.rows.item_ids.ids[self.rows.items[row]]
            found = (
                f"item {item!r} is one of the query's own training rows, "
                f"as are {int(seen.sum()):,} places of {int(seen.any(axis=1).sum()):,} lists"
            )
            remedy = "make the lists on the training part of this split, or set seen: keep"
            raise BrokenContract(found, where=self.rows.place(row), remedy=remedy)


def _at(values: AnyArray, places: RowOrder) -> AnyArray:
    """Return the values at the places; any value at a place outside."""
    if not values.size:
        return np.full(places.shape, -1, dtype=np.int64)
    return values[np.clip(places, 0, values.size - 1)]
