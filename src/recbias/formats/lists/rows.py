"""The rows of a file of lists, as codes: what every layout is read to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, UnknownIdentifier
from recbias.formats.text_cells import parse_numbers, shorten

Place: TypeAlias = Callable[[int], str]
"""Where a row (from 0) stands: ``file:line``; ``file: row n`` in a Parquet file."""


LARGEST_RANK = 2**53
"""Whole numbers up to here are all told apart."""


@dataclass(frozen=True, eq=False)
class ListRows:
    """The rows of a file of lists, in the order of the file.

    Args:
        path: The file.
        query_ids: The queries of the file, in the order they appear.
        item_ids: The items of the file, in the order they appear.
        queries: Code of the query, ``int32[n]``.
        items: Code of the item, ``int32[n]``.
        ranks: Rank as written, ``float64[n]``, or None.
        scores: Score as written, ``float64[n]``, or None.
        place: Where a row stands, for messages.
        in_order: Whether rows of equal score stand in the order of the file (else in that of the
            item ids).
        datasets: The labels of the datasets and the code of each row's, or None where the file is
            not parted by dataset.
    """

    path: Path
    query_ids: Vocabulary
    item_ids: Vocabulary
    queries: Codes
    items: Codes
    ranks: FloatArray | None
    scores: FloatArray | None
    place: Place
    in_order: bool = False
    datasets: tuple[Vocabulary, Codes] | None = None

    def of_dataset(self, label: str) -> ListRows:
        """Return the rows of a dataset, over their own ids; all where no label tells them apart.

        Raises:
            UnknownIdentifier: No row is of that dataset.
        """
        if self.datasets is None or not label:
            return self
        labels, codes = self.datasets
        code = int(labels.find(np.array([label], dtype=object))[0])
        if code < 0:
            known = ", ".join(map(repr, sorted(labels.ids)[:12])) or "none"
            found = f"no row is of the dataset {label!r}: its column 'dataset' has {known}"
            remedy = "give the dataset such a label in the spec, or leave the column out"
            raise UnknownIdentifier(found, where=str(self.path), remedy=remedy)
        rows = replace(self, datasets=None).take(np.flatnonzero(codes == code))
        query_ids, queries = _over(rows.query_ids, rows.queries)
        item_ids, items = _over(rows.item_ids, rows.items)
        return replace(rows, query_ids=query_ids, item_ids=item_ids, queries=queries, items=items)

    def take(self, rows: AnyArray) -> ListRows:
        """Return some of the rows, by position, over the same ids."""
        ranks = None if self.ranks is None else self.ranks[rows]
        scores = None if self.scores is None else self.scores[rows]
        return replace(
            self,
            queries=self.queries[rows],
            items=self.items[rows],
            ranks=ranks,
            scores=scores,
            place=partial(_place_of_taken, self.place, rows),
            datasets=self.datasets and (self.datasets[0], self.datasets[1][rows]),
        )


def _over(ids: Vocabulary, codes: Codes) -> tuple[Vocabulary, Codes]:
    """Return the ids that occur, in order of appearance, and the codes over them."""
    own, kept = pd.factorize(codes)
    return ids.take(kept), own.astype(np.int32)


def _place_of_taken(place: Place, rows: AnyArray, row: int) -> str:
    return place(int(rows[row]))


def rows_of(
    columns: Mapping[str, Any], path: Path, place: Place, *, in_order: bool = False
) -> ListRows:
    """Return the rows of Arrow columns.

    Args:
        columns: Chunked arrays ``query_id``, ``item_id`` and, where there are any, ``rank``,
            ``score`` and ``dataset``.
        path: The file they were read from.
        place: Where a row stands.
        in_order: Whether rows of equal score stand in the order of the file.

    Raises:
        MalformedLine: An id is empty, or a rank or score is not a number.
    """
    query_ids, queries = encoded(columns["query_id"], "query_id", place)
    item_ids, items = encoded(columns["item_id"], "item_id", place)
    ranks, scores = (
        _numbers(columns[name], name, place) if name in columns else None
        for name in ("rank", "score")
    )
    datasets = encoded(columns["dataset"], "dataset", place) if "dataset" in columns else None
    return ListRows(
        path, query_ids, item_ids, queries, items, ranks, scores, place, in_order, datasets
    )


def encoded(column: Any, name: str, place: Place) -> tuple[Vocabulary, Codes]:
    """Return the identifiers of a chunked array in order of appearance, and each row's code.

    Raises:
        MalformedLine: A cell is empty.
    """
    import pyarrow as pa
    from pyarrow import compute

    texts = column.cast(pa.string())
    missing = compute.or_kleene(texts.is_null(), compute.equal(texts, "")).fill_null(True)  # noqa: FBT003  a value, no flag
    if compute.any(missing).as_py():
        row = missing.index(value=True).as_py()
        raise MalformedLine(f"an empty {name}", where=place(row))
    words = texts.dictionary_encode().combine_chunks()
    ids = np.array(words.dictionary.to_pylist(), dtype=object)
    return Vocabulary(ids), words.indices.to_numpy().astype(np.int32, copy=False)


def _numbers(column: Any, name: str, place: Place) -> FloatArray:
    import pyarrow as pa

    if pa.types.is_string(column.type):
        numbers = parse_numbers(column, name, place)
    else:
        numbers = np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)
    if name == "rank":
        _refuse_large(column, numbers, place)
    return numbers


def _refuse_large(column: Any, ranks: FloatArray, place: Place) -> None:
    """Refuse ranks that are too large to be told apart."""
    wrong = np.flatnonzero(np.isfinite(ranks) & (np.abs(ranks) > LARGEST_RANK))
    if wrong.size:
        row = int(wrong[0])
        found = f"the rank {shorten(column[row].as_py())} is beyond {LARGEST_RANK:,}"
        remedy = "number the items of each list from 1: ranks only order"
        raise MalformedLine(found, where=place(row), remedy=remedy)
