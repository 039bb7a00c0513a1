"""The rows of a file of lists as integer codes, common to all layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, UnknownIdentifier
from recbias.formats.text_cells import parse_numbers, shorten

RowLocator: TypeAlias = Callable[[int], str]
"""Returns ``file:line`` of a row (from 0); ``file: row n`` for a Parquet file."""

LARGEST_RANK = 2**53
"""Up to here ``float64`` represents all whole numbers."""


@dataclass(frozen=True, eq=False)
class ListRows:
    """The rows of a file of lists, in file order.

    Args:
        path: The file.
        query_ids: The queries of the file, in order of appearance.
        item_ids: The items of the file, in order of appearance.
        queries: Codes of the queries, ``int32[n]``.
        items: Codes of the items, ``int32[n]``.
        ranks: The ranks as written, ``float64[n]``, or None.
        scores: The scores as written, ``float64[n]``, or None.
        place: Returns the place of a row, for messages.
        in_order: Whether rows of equal score are in list order; else in order of the item ids.
        datasets: The labels of the datasets and the code of each row's dataset, or None if the
            file has no column ``dataset``.
    """

    path: Path
    query_ids: Vocabulary
    item_ids: Vocabulary
    queries: Codes
    items: Codes
    ranks: FloatArray | None
    scores: FloatArray | None
    place: RowLocator
    in_order: bool = False
    datasets: tuple[Vocabulary, Codes] | None = None

    def of_dataset(self, label: str) -> ListRows:
        """Return the rows of a dataset, over the ids that occur in them.

        All rows are returned if the label is "" or the file has no column ``dataset``.

        Raises:
            UnknownIdentifier: No row belongs to that dataset.
        """
        if self.datasets is None or not label:
            return self
        labels, codes = self.datasets
        code = int(labels.find(np.array([label], dtype=object))[0])
        if code < 0:
            listed = ", ".join(map(repr, sorted(labels.ids)[:12])) or "none"
            message = f"no row is of the dataset {label!r}: its column 'dataset' has {listed}"
            remedy = "set such a label for the dataset, or remove the column"
            raise UnknownIdentifier(message, where=str(self.path), remedy=remedy)
        rows = replace(self, datasets=None).take(np.flatnonzero(codes == code))
        query_ids, queries = _compact(rows.query_ids, rows.queries)
        item_ids, items = _compact(rows.item_ids, rows.items)
        return replace(rows, query_ids=query_ids, item_ids=item_ids, queries=queries, items=items)

    def take(self, rows: AnyArray) -> ListRows:
        """Return some of the rows, by position, over the same ids."""
        return replace(
            self,
            queries=self.queries[rows],
            items=self.items[rows],
            ranks=None if self.ranks is None else self.ranks[rows],
            scores=None if self.scores is None else self.scores[rows],
            place=lambda row: self.place(int(rows[row])),
            datasets=self.datasets and (self.datasets[0], self.datasets[1][rows]),
        )


def _compact(ids: Vocabulary, codes: Codes) -> tuple[Vocabulary, Codes]:
    """Return the ids that occur, in order of appearance, and the codes over them."""
    new_codes, old_codes = pd.factorize(codes)
    return ids.take(old_codes), new_codes.astype(np.int32)


def encode_rows(
    columns: Mapping[str, Any], path: Path, locate: RowLocator, *, in_order: bool = False
) -> ListRows:
    """Return the rows of Arrow columns.

    Args:
        columns: Chunked arrays ``query_id``, ``item_id`` and, if present, ``rank``, ``score`` and
            ``dataset``.
        path: The file they were read from.
        locate: Returns the place of a row.
        in_order: Whether rows of equal score are in list order.

    Raises:
        MalformedLine: An id is empty, or a rank or score is not a number.
    """
    query_ids, queries = encode_column(columns["query_id"], "query_id", locate)
    item_ids, items = encode_column(columns["item_id"], "item_id", locate)
    ranks, scores = (
        _to_numbers(columns[name], name, locate) if name in columns else None
        for name in ("rank", "score")
    )
    datasets = None
    if "dataset" in columns:
        datasets = encode_column(columns["dataset"], "dataset", locate)
    ids, codes = (query_ids, item_ids), (queries, items)
    return ListRows(path, *ids, *codes, ranks, scores, locate, in_order, datasets)


def encode_column(column: Any, name: str, locate: RowLocator) -> tuple[Vocabulary, Codes]:
    """Return the identifiers of a chunked array in order of appearance, and each row's code.

    Raises:
        MalformedLine: A cell is empty.
    """
    texts = column.cast(pa.string())
    empty = compute.or_kleene(texts.is_null(), compute.equal(texts, "")).fill_null(True)  # noqa: FBT003  a value, no flag
    if compute.any(empty).as_py():
        row = empty.index(value=True).as_py()
        raise MalformedLine(f"an empty {name}", where=locate(row))
    encoded = texts.dictionary_encode().combine_chunks()
    ids = np.array(encoded.dictionary.to_pylist(), dtype=object)
    return Vocabulary(ids), encoded.indices.to_numpy().astype(np.int32, copy=False)


def _to_numbers(column: Any, name: str, locate: RowLocator) -> FloatArray:
    if pa.types.is_string(column.type):
        numbers = parse_numbers(column, name, locate)
    else:
        numbers = np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)
    is_large = np.isfinite(numbers) & (np.abs(numbers) > LARGEST_RANK)
    if name == "rank" and is_large.any():  # rounding may make two such ranks equal
        row = int(is_large.argmax())
        message = f"the rank {shorten(column[row].as_py())} is beyond {LARGEST_RANK:,}"
        remedy = "number the items of each list from 1"
        raise MalformedLine(message, where=locate(row), remedy=remedy)
    return numbers
