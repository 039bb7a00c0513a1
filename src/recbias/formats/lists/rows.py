"""The columns of a file of lists by role, and its rows as integer codes, for all layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, UnknownColumn, UnknownIdentifier
from recbias.core.suggestions import normalize_name, suggest
from recbias.formats.text_lines import parse_numbers, shorten

ALIASES: Mapping[str, frozenset[str]] = {
    "query_id": frozenset({"queryid", "query", "qid", "userid", "user", "uid"}),
    "item_id": frozenset({"itemid", "item", "iid", "docid", "docno"}),
    "rank": frozenset({"rank"}),
    "score": frozenset({"score", "prediction", "rating"}),
    "dataset": frozenset({"dataset"}),
}
"""The names that other tools use for each role, without case, ``_`` and ``-``."""

RowLocator: TypeAlias = Callable[[int], str]
"""Returns ``file:line`` of a row (from 0); ``file: row n`` for a Parquet file."""

LARGEST_RANK = 2**53
"""Up to here ``float64`` represents all whole numbers."""


def assign_roles(names: Sequence[str], location: str, *, ordered: bool = False) -> dict[str, str]:
    """Return the column of each role: ``query_id``, ``item_id`` and ``rank``, ``score`` or both.

    A column ``dataset`` names the dataset of each row. A column with the name of the role comes
    before one with another tool's name for it.

    If the table is ``ordered``, its lines may be in list order, without rank and score.

    >>> assign_roles(["userId", "item", "prediction", "fold"], "mine.csv:1")
    {'query_id': 'userId', 'item_id': 'item', 'score': 'prediction'}

    Raises:
        UnknownColumn: There is no column for the query or the item, or neither rank nor score.
        MalformedLine: Two columns match the same role.
    """
    roles = {role: name for role in ALIASES if (name := _find_column(role, names, location))}
    for role in ("query_id", "item_id"):
        if role not in roles:
            remedy = f"rename the column to {role!r}; {suggest(role, names)}"
            raise UnknownColumn(f"no column {role!r}", where=location, remedy=remedy)
    if not (ordered or {"rank", "score"} & set(roles)):
        remedy = (
            "give each row a rank (1 is the best), a score, or both; "
            "if the lines are in list order, set layout: recbole"
        )
        raise UnknownColumn("neither a column 'rank' nor 'score'", where=location, remedy=remedy)
    return roles


def _find_column(role: str, names: Sequence[str], location: str) -> str | None:
    exact = [name for name in names if name == role]
    matches = exact or [name for name in names if normalize_name(name) in ALIASES[role]]
    if len(matches) < 2:
        return matches[0] if matches else None
    if len(set(matches)) == 1:
        raise MalformedLine(f"two columns are called {matches[0]!r}", where=location)
    listed = " and ".join(map(repr, matches))
    remedy = f"rename the right one to {role!r}"
    raise MalformedLine(f"{listed} may each be the {role}", where=location, remedy=remedy)


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
