"""Lists from other tools: tables, RecBole's, Elliot's, LensKit's, TREC runs and ranx's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from recbias.core.context import warn
from recbias.core.dataset import (
    AnyArray,
    BoolArray,
    Codes,
    FloatArray,
    Ids,
    TrainingData,
    Vocabulary,
    count_distinct,
    sort_naturally,
)
from recbias.core.errors import (
    AmbiguousLayout,
    BrokenContract,
    Contradiction,
    MalformedLine,
    UnknownColumn,
    UnknownIdentifier,
    WrongType,
)
from recbias.core.queries import Queries
from recbias.core.text import normalize_name, suggest
from recbias.formats.delimited import Table, explain_header, parse_numbers, read_texts
from recbias.formats.identifiers import check_ids
from recbias.formats.json_files import read_queries, to_floats
from recbias.formats.tables import (
    decode_dictionary,
    is_typed,
    locate_row,
    read_columns,
    read_parquet,
    read_schema,
    read_table_header,
    rename_all,
    to_numbers,
    to_text,
)
from recbias.formats.text_files import (
    TAB,
    get_suffix,
    is_number,
    read_first_line,
    require_file,
    shorten,
)

ListLayout: TypeAlias = Literal["table", "trec", "elliot", "recbole", "ranx", "lenskit"]
"""The layout of a file of lists."""

ListOrder: TypeAlias = Literal["auto", "rank", "score", "rows"]
"""What the items of a list are ordered by; ``auto`` is the rank, or the score without ranks."""

RowOrder = npt.NDArray[np.int64]

_PARQUET = (".parquet", ".parq")
_TEXT = (".csv", ".tsv", ".txt", ".inter")
_BY_NAME: Mapping[str, ListLayout] = {".trec": "trec", ".run": "trec", ".json": "ranx"}

_RUN_COLUMNS = ("query_id", "iteration", "item_id", "rank", "score", "tag")
_ITEMS = "items"  # the column in which LensKit stores the items of a list
_SHAPE = "{query: {item: score}} or {query: [item, ...]}"

_ALIASES: Mapping[str, frozenset[str]] = {
    "query_id": frozenset({"queryid", "query", "qid", "userid", "user", "uid"}),
    "item_id": frozenset({"itemid", "item", "iid", "docid", "docno"}),
    "rank": frozenset({"rank"}),
    "score": frozenset({"score", "prediction", "rating"}),
    "dataset": frozenset({"dataset"}),
}
"""The names that other tools use for each role, without case, ``_`` and ``-``."""

_Locate: TypeAlias = Callable[[int], str]
"""Returns ``file:line`` of a row (from 0); ``file: row n`` for a Parquet file."""

_Columns: TypeAlias = tuple["ListRows", dict[str, str]]
"""The rows of a file, and the name of the column of each role."""

_MASK = -3.4e38
"""Scores up to here, as minus infinity and the minimum of float32, mask an item."""

_PADDING = "-1"
"""The item with which tools fill a short list."""


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
    place: _Locate
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

    def show_first(self) -> str:
        """Return the first row, for messages."""
        query, item = self.query_ids.ids[self.queries[0]], self.item_ids.ids[self.items[0]]
        numbers = {"rank": self.ranks, "score": self.scores}
        shown = [f"{name} {column[0]:g}" for name, column in numbers.items() if column is not None]
        return ", ".join([f"query {query!r}", f"item {item!r}", *shown])

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


def check_name(path: Path, layout: ListLayout | Literal["auto"]) -> None:
    """Raise WrongType if the suffix of a file contradicts its layout.

    Raises:
        WrongType: The suffix is unknown and no layout is named, or a Parquet file has a layout of
            text files.
    """
    suffix = get_suffix(path)
    suffixes = (*_TEXT, *_PARQUET, *_BY_NAME)
    if layout == "auto" and suffix not in suffixes:
        message = f"{path.name} does not have the suffix of a file of lists"
        remedy = f"name it {', '.join(suffixes)} (also with .gz), or set its layout"
        raise WrongType(message, where="path", remedy=remedy)
    if suffix in _PARQUET and layout not in {"auto", "table", "lenskit"}:
        message = f"{path.name} is not in the {layout} layout"
        remedy = "omit layout: a Parquet file is a table, or LensKit's"
        raise WrongType(message, where="layout", remedy=remedy)


def detect_layout(path: Path) -> ListLayout:
    """Return the layout of a file, by its name and, if that leaves it open, its first line.

    ``.json`` is ``ranx``; ``.trec`` and ``.run`` are ``trec``; Parquet is ``lenskit`` if it has a
    column ``items`` of lists, else ``table``. Any other file is ``recbole`` if each cell of the
    first line is a name with a type, ``elliot`` if it has three cells separated by tabs of which
    the third is a number, ``trec`` if it has six cells of which the fourth and fifth are numbers,
    and ``table`` otherwise.
    """
    suffix = get_suffix(path)
    if suffix in _PARQUET:
        return "lenskit" if _is_nested(path) else "table"
    return _BY_NAME.get(suffix) or detect_by_line(read_first_line(path))


def detect_by_line(line: str) -> ListLayout:
    r"""Return the layout that the first line of a text file shows.

    >>> detect_by_line("user_id:token\titem_id:token"), detect_by_line("1\t7\t0.5")
    ('recbole', 'elliot')
    """
    cells = line.split("\t" if "\t" in line else ",")
    if is_typed(cells):
        return "recbole"
    if "\t" in line and len(cells) == 3 and is_number(cells[2]):
        return "elliot"
    words = line.split()
    if len(words) == 6 and is_number(words[3]) and is_number(words[4]):
        return "trec"
    return "table"


def read_rows(
    path: Path,
    layout: ListLayout | Literal["auto"] = "auto",
    order: ListOrder = "auto",
    columns: tuple[tuple[str, str], ...] = (),
) -> ListRows:
    """Return the rows of a file of lists, with the columns that their order needs.

    ``columns`` are pairs of a name in the file and a new name, such as ``item_id``.

    A warning names what was inferred: the layout if it was detected by the first line, with that
    line, and each column with another name than its role or ``user_id``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: There is no column for the query or the item, or neither rank nor score.
        MalformedLine: A line does not fit the layout, two columns match the same role, an
            identifier is empty, or a rank or score is not a number.
        AmbiguousLayout: The numbers of an ``elliot`` file may be ranks or scores.
        Contradiction: The layout has no names of columns, or two are the same after renaming.
    """
    require_file(path)
    used_layout = detect_layout(path) if layout == "auto" else layout
    if columns and used_layout not in {"table", "recbole", "lenskit"}:
        message = f"{path.name} was read as {used_layout}, which does not name its columns"
        raise Contradiction(message, where="columns", remedy="remove columns, or change layout")
    try:
        rows, roles = _READERS[used_layout](path, order, dict(columns))
    except (MalformedLine, UnknownColumn) as error:
        detected = detect_layout(path)
        if layout in {"auto", detected}:
            raise
        remedy = f"by its name and first line it is {detected}: omit layout, or correct the file"
        raise type(error)(error.message, where=error.where, remedy=remedy) from error
    by_line = layout == "auto" and get_suffix(path) not in {*_BY_NAME, *_PARQUET}
    usual = {*roles, "user_id", *dict(columns)}
    inferred = [f"{name} is the {role}" for role, name in roles.items() if name not in usual]
    is_guess = by_line and used_layout != "table"
    if inferred or is_guess:
        shown = [rows.show_first()] if is_guess and rows.queries.size else []
        warn("; ".join([f"{path.name} was read as {used_layout}", *shown, *inferred]))
    if used_layout == "elliot" and order == "auto" and _may_be_ranks(rows):
        message = f"its numbers count up in each list, as ranks do, or scores: {rows.show_first()}"
        remedy = "set order: rank, or order: score"
        raise AmbiguousLayout(message, where=rows.place(0), remedy=remedy)
    return _select_order(rows, order)


def _may_be_ranks(rows: ListRows) -> bool:
    """Return whether the scores of each list are whole numbers that count up, also with gaps."""
    if (
        rows.scores is None
        or (rows.scores < 0).any()
        or (np.rint(rows.scores) != rows.scores).any()
    ):
        return False
    lists = pd.Series(rows.scores).groupby(rows.queries)
    rises = lists.diff().dropna() > 0
    is_count = any((lists.rank() - first == rows.scores).all() for first in (0, 1))
    return bool(rises.any() if is_count else rises.size and rises.all())


def _count_rows(rows: ListRows) -> FloatArray:
    """Return the position of each row in its list, from 1."""
    counts = pd.Series(rows.queries).groupby(rows.queries).cumcount()
    return np.asarray(counts + 1, dtype=np.float64)


def _select_order(rows: ListRows, order: ListOrder) -> ListRows:
    """Return the rows with the one column that orders them; both may be there for ``auto``."""
    if order == "auto":
        return rows
    if order == "rows":
        return replace(rows, ranks=_count_rows(rows), scores=None)
    if (rows.ranks if order == "rank" else rows.scores) is None:
        raise UnknownColumn(f"there is no {order}", where=str(rows.path), remedy="change order")
    return replace(rows, scores=None) if order == "rank" else replace(rows, ranks=None)


def order_rows(rows: ListRows, dataset: str = "") -> tuple[ListRows, RowOrder]:
    """Return the rows of a dataset, and their order: list by list, the best item first.

    Rows that mask an item, with a score of minus infinity or the minimum of float32, or that fill
    a list, with the item -1, are excluded with a warning.

    Raises:
        UnknownIdentifier: No row belongs to the dataset.
        BrokenContract: A list contains an item or a rank twice, a rank that is not a whole
            number, a score of NaN, or scores that increase with the rank.
    """
    rows = rows.of_dataset(dataset)
    is_masked = rows.item_ids.ids[rows.items] == _PADDING
    if rows.scores is not None:
        is_masked |= rows.scores <= _MASK
    if n_masked := int(is_masked.sum()):
        kinds = "a score of minus infinity or the minimum of float32, or the item -1"
        warn(f"{rows.path.name}: {n_masked:,} rows are excluded as masks: {kinds}")
        rows = rows.take(np.flatnonzero(~is_masked))
    order = _sort(rows)
    _validate_lists(rows, order)
    return rows, order


def _sort(rows: ListRows) -> RowOrder:
    if rows.ranks is not None:
        is_next = np.diff(rows.ranks) > 0
        steps = np.diff(rows.queries)
        if ((steps > 0) | ((steps == 0) & is_next)).all():
            return np.arange(rows.queries.size)
        return np.lexsort((rows.ranks, rows.queries))
    scores = rows.scores if rows.scores is not None else np.zeros(rows.queries.size)
    if rows.in_order:
        return np.lexsort((-scores, rows.queries))
    positions = np.empty(len(rows.item_ids), dtype=np.int64)
    positions[sort_naturally(rows.item_ids.ids)] = np.arange(positions.size)
    return np.lexsort((positions[rows.items], -scores, rows.queries))


def _validate_lists(rows: ListRows, order: RowOrder) -> None:
    queries = rows.queries[order]
    keys = queries.astype(np.int64) * len(rows.item_ids) + rows.items[order]
    if count_distinct(keys) < keys.size:
        keys = rows.queries.astype(np.int64) * len(rows.item_ids) + rows.items
        _refuse(rows, pd.Series(keys).duplicated().to_numpy(), "occurs twice in the list")
    same_list = queries[1:] == queries[:-1]
    if rows.ranks is not None:
        not_whole = ~np.isfinite(rows.ranks) | (np.floor(rows.ranks) != rows.ranks)
        _refuse(rows, not_whole, "has a rank that is not a whole number")
        ranks = rows.ranks[order]
        repeated = same_list & (ranks[1:] == ranks[:-1])
        _refuse(rows, _mask_later(order, repeated), "repeats a rank in the list")
    if rows.scores is not None:
        _refuse(rows, np.isnan(rows.scores), "has a score of NaN")
        scores = rows.scores[order]
        rises = same_list & (scores[1:] > scores[:-1])
        message = "has a higher score than the item ranked before it"
        remedy = "correct the lists, or set order: rank or order: score"
        _refuse(rows, _mask_later(order, rises), message, remedy)


def _mask_later(order: RowOrder, wrong: BoolArray) -> BoolArray:
    """Return a mask over the rows of the file: the later row of each wrong pair in ``order``."""
    mask = np.zeros(order.size, dtype=bool)
    mask[order[1:][wrong]] = True
    return mask


def _refuse(rows: ListRows, wrong: BoolArray, problem: str, remedy: str = "") -> None:
    """Raise BrokenContract with the first wrong row and the number of the others."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        item = rows.item_ids.ids[rows.items[row]]
        query = rows.query_ids.ids[rows.queries[row]]
        n_more = int(wrong.sum()) - 1
        message = f"item {item!r} {problem} of query {query!r}"
        message += f", and {n_more:,} more such rows" if n_more else ""
        raise BrokenContract(message, where=rows.place(row), remedy=remedy)


def check_list_ids(rows: ListRows, queries: Queries, data: TrainingData) -> None:
    """Refuse a file of which no query or no item is known; warn of unknown items.

    Raises:
        UnknownIdentifier: No query of the file is one of the run or a user of the dataset, or no
            item is in the dataset.
    """
    where, asked, items = str(rows.path), queries.ids, data.train.item_ids
    query_ids, item_ids = rows.query_ids.ids, rows.item_ids.ids
    if _has_any(asked, query_ids) or not _has_any(data.train.user_ids, query_ids):
        is_swapped = _has_any(items, query_ids) and _has_any(asked, item_ids)
        remedy = "its columns of queries and items look swapped" if is_swapped else ""
        check_ids(query_ids, asked, "queries", where, may_lack=True, remedy=remedy)
    check_ids(item_ids, items, "items", where)


def _has_any(vocabulary: Vocabulary, ids: Ids) -> bool:
    return bool((vocabulary.find(ids) >= 0).any())


def _assign_roles(
    file_names: Sequence[str],
    location: str,
    renamed: Mapping[str, str] = MappingProxyType({}),
    *,
    ordered: bool = False,
) -> dict[str, str]:
    """Return the column of each role: ``query_id``, ``item_id`` and ``rank``, ``score`` or both.

    >>> _assign_roles(["userId", "item", "prediction", "fold"], "mine.csv:1")
    {'query_id': 'userId', 'item_id': 'item', 'score': 'prediction'}
    """
    sources = rename_all(file_names, renamed, location)
    names = [*sources]
    roles = {role: name for role in _ALIASES if (name := _find_column(role, names, location))}
    for role in ("query_id", "item_id"):
        if role not in roles:
            remedy = f"columns: {{{names[0]}: {role}}} renames one; {suggest(role, names)}"
            error = UnknownColumn(f"no column {role!r}", where=location, remedy=remedy)
            raise explain_header(error, names, roles.values())
    if not (ordered or {"rank", "score"} & set(roles)):
        remedy = (
            "give each row a rank (1 is the best), a score, or both; "
            "if the lines are in list order, set order: rows"
        )
        raise UnknownColumn("neither a column 'rank' nor 'score'", where=location, remedy=remedy)
    return {role: sources[name] for role, name in roles.items()}


def _find_column(role: str, names: Sequence[str], location: str) -> str | None:
    exact = [name for name in names if name == role]
    matches = exact or [name for name in names if normalize_name(name) in _ALIASES[role]]
    if len(matches) < 2:
        return matches[0] if matches else None
    listed = " and ".join(map(repr, matches))
    remedy = f"rename the right one to {role!r}"
    raise MalformedLine(f"{listed} may each be the {role}", where=location, remedy=remedy)


def _encode_rows(
    columns: Mapping[str, Any], path: Path, locate: _Locate, *, in_order: bool = False
) -> ListRows:
    """Return the rows of Arrow columns."""
    query_ids, queries = _encode_column(columns["query_id"], "query_id", locate)
    item_ids, items = _encode_column(columns["item_id"], "item_id", locate)
    ranks, scores = (
        _to_numbers(columns[name], name, locate) if name in columns else None
        for name in ("rank", "score")
    )
    datasets = None
    if "dataset" in columns:
        datasets = _encode_column(columns["dataset"], "dataset", locate)
    ids, codes = (query_ids, item_ids), (queries, items)
    return ListRows(path, *ids, *codes, ranks, scores, locate, in_order, datasets)


def _encode_column(column: Any, name: str, locate: _Locate) -> tuple[Vocabulary, Codes]:
    """Return the identifiers of a chunked array in order of appearance, and each row's code."""
    texts = column.cast(pa.string())
    empty = compute.equal(texts, "")
    if compute.any(empty).as_py():
        row = empty.index(value=True).as_py()
        raise MalformedLine(f"an empty {name}", where=locate(row))
    encoded = texts.dictionary_encode().combine_chunks()
    ids = np.array(encoded.dictionary.to_pylist(), dtype=object)
    return Vocabulary(ids), encoded.indices.to_numpy().astype(np.int32, copy=False)


def _to_numbers(column: Any, name: str, locate: _Locate) -> FloatArray:
    if pa.types.is_string(column.type):
        return parse_numbers(column, name, locate)
    return np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64)


def _read_table(
    path: Path, order: ListOrder, renamed: Mapping[str, str], *, in_order: bool = False
) -> _Columns:
    """Read a table with a header; its rows are ``in_order`` in the layout of RecBole."""
    if get_suffix(path) in _PARQUET:
        return _read_flat_parquet(path, order, renamed)
    header = read_table_header(path)
    is_ordered = in_order or order == "rows"
    roles = _assign_roles([*header.columns], header.where, renamed, ordered=is_ordered)
    table = read_columns(path, header, {role: (name, "text") for role, name in roles.items()})
    return _encode_rows(_to_columns(table), path, table.place, in_order=in_order), roles


def _to_columns(table: Table) -> dict[str, Any]:
    return dict(zip(table.columns, table.cells.columns, strict=True))


def _read_elliot(path: Path, order: ListOrder, _renamed: Mapping[str, str]) -> _Columns:
    """Read user, item and score separated by tabs, without a header."""
    names = ("query_id", "item_id", "rank" if order == "rank" else "score")
    table = read_texts(path, TAB, names)
    return _encode_rows(_to_columns(table), path, table.place, in_order=True), {}


def _read_run(path: Path, _order: ListOrder, _renamed: Mapping[str, str]) -> _Columns:
    """Read a TREC run: query, Q0, item, rank, score and tag, without a header."""
    table = read_texts(path, "", _RUN_COLUMNS)
    if not len(table):
        raise MalformedLine("the file is empty", where=str(path))
    rows = _encode_rows(_to_columns(table), path, table.place)
    ranks = pd.Series(rows.ranks).groupby(rows.queries)
    if (ranks.min() == ranks.max()).all() and (ranks.size() > 1).any():
        warn(f"{path.name}: the ranks of each list are equal: it is ordered as by trec_eval")
        rows = replace(rows, ranks=_rank_by_score(rows))
    return rows, {}


def _rank_by_score(rows: ListRows) -> FloatArray:
    """Return the rank of each row by score, equal ones by item from the last to the first."""
    positions = np.argsort(np.argsort(rows.item_ids.ids))
    scores = np.zeros(positions.size) if rows.scores is None else rows.scores
    order = np.lexsort((-positions[rows.items], -scores, rows.queries))
    ranks = np.empty(order.size)
    ranks[order] = np.arange(order.size)
    return ranks


def _read_json(path: Path, _order: ListOrder, _renamed: Mapping[str, str]) -> _Columns:
    """Return the rows of a JSON file of lists; equal scores are in file order."""
    queries, items, scores, locate = read_queries(path, _SHAPE, may_rank=True)
    _validate_types(items, {str, int}, "an item is a text or a whole number", locate)
    columns = {"query_id": queries, "item_id": [str(item) for item in items]}
    arrays = {name: pa.chunked_array([cells], pa.string()) for name, cells in columns.items()}
    if scores is not None:
        _validate_types(scores, {int, float}, "a score is a number", locate)
        arrays["score"] = pa.chunked_array([to_floats(scores)])
    return _encode_rows(arrays, path, locate, in_order=True), {}


def _validate_types(values: Sequence[Any], types: set[type], rule: str, locate: _Locate) -> None:
    if not set(map(type, values)) <= types:
        row = next(row for row, value in enumerate(values) if type(value) not in types)
        message = f"{rule}, not {shorten(values[row])}"
        raise MalformedLine(message, where=locate(row))


def _is_nested(path: Path) -> bool:
    """Return whether each row of a Parquet file is a list, as in LensKit's layout."""
    schema = read_schema(path)
    if _ITEMS not in schema.names:
        return False
    column_type = schema.field(_ITEMS).type
    is_list = pa.types.is_list(column_type) or pa.types.is_large_list(column_type)
    return bool(is_list and pa.types.is_struct(column_type.value_type))


def _read_flat_parquet(path: Path, order: ListOrder, renamed: Mapping[str, str]) -> _Columns:
    """Return the rows of a Parquet file with one row per item, and the column of each role."""
    table = read_parquet(path)
    roles = _assign_roles(table.column_names, str(path), renamed, ordered=order == "rows")
    columns = {role: table.column(name) for role, name in roles.items()}
    return _encode_rows(_convert_columns(columns, path), path, partial(locate_row, path)), roles


def _read_lenskit(path: Path, order: ListOrder, renamed: Mapping[str, str]) -> _Columns:
    """Read LensKit's Parquet layout, or a table."""
    if get_suffix(path) not in _PARQUET or not _is_nested(path):
        return _read_table(path, order, renamed)
    table = read_parquet(path)
    lists = table.column(_ITEMS).combine_chunks()
    keys = [name for name in table.column_names if name != _ITEMS]
    items = compute.list_flatten(lists)
    names = [field.name for field in items.type]
    chunks = [pa.chunked_array([values]) for values in items.flatten()]
    fields = dict(zip(names, chunks, strict=True))
    roles = _assign_roles([*keys, *fields], str(path), renamed, ordered=True)
    list_rows = compute.list_parent_indices(lists).to_numpy()
    queries = _convert_column("query_id", table.column(roles["query_id"]), path)
    query_ids, codes = _encode_column(queries, "query_id", partial(locate_row, path))
    columns = {role: fields[name] for role, name in roles.items() if name in fields}
    for role in ("query_id", "dataset"):
        if roles.get(role) in keys:
            columns[role] = table.column(roles[role]).take(list_rows)
    if not {"rank", "score"} & set(columns):
        starts = np.searchsorted(list_rows, list_rows)
        columns["rank"] = pa.chunked_array([np.arange(1, list_rows.size + 1) - starts])

    def locate(row: int) -> str:
        return locate_row(path, int(list_rows[row]))

    rows = _encode_rows(_convert_columns(columns, path), path, locate)
    return replace(rows, query_ids=query_ids, queries=codes[list_rows]), roles


def _convert_columns(columns: Mapping[str, Any], path: Path) -> dict[str, Any]:
    return {role: _convert_column(role, column, path) for role, column in columns.items()}


def _convert_column(role: str, column: Any, path: Path) -> Any:
    """Return a column as text; a rank or score as numbers, unless it is text."""
    location, column = f"{path}: {role}", decode_dictionary(column)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text or role not in {"rank", "score"}:
        return to_text(column, location)
    return column if pa.types.is_integer(column.type) else to_numbers(column, location)


_READERS: Mapping[ListLayout, Callable[[Path, ListOrder, Mapping[str, str]], _Columns]] = {
    "table": _read_table,
    "trec": _read_run,
    "elliot": _read_elliot,
    "recbole": partial(_read_table, in_order=True),
    "ranx": _read_json,
    "lenskit": _read_lenskit,
}
