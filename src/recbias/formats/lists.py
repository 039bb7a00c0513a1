"""Lists from other tools: tables, RecBole's, Elliot's, LensKit's, TREC runs and ranx's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyarrow import compute

from recbias.core.context import warn
from recbias.core.dataset import (
    AnyArray,
    Codes,
    FloatArray,
    Queries,
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
from recbias.core.text import normalize_name
from recbias.formats.delimited import Kind, Layout, explain_header, make_unknown, read_table
from recbias.formats.identifiers import check_ids, question_ids
from recbias.formats.json_files import read_queries
from recbias.formats.tables import (
    PARQUET,
    Selected,
    cast_cells,
    is_typed,
    locate_row,
    read_file,
    read_parquet,
    read_schema,
    rename_all,
)
from recbias.formats.text_files import (
    TAB,
    get_suffix,
    is_number,
    read_first_line,
    require_file,
)

ListLayout: TypeAlias = Literal["table", "trec", "elliot", "recbole", "ranx", "lenskit"]
"""The layout of a file of lists."""

ListOrder: TypeAlias = Literal["auto", "rank", "score", "rows"]
"""What the items of a list are ordered by; ``auto`` is the rank, or the score without ranks."""

_TEXT = (".csv", ".tsv", ".txt", ".inter")
_BY_NAME: Mapping[str, ListLayout] = {".trec": "trec", ".run": "trec", ".json": "ranx"}

_KINDS: Mapping[str, Kind] = {
    "query_id": "id",
    "item_id": "id",
    "rank": "float64",
    "score": "float64",
    "dataset": "id",
}
"""What the column of each role holds."""

_ALIASES: Mapping[str, frozenset[str]] = {
    "query_id": frozenset({"queryid", "query", "qid", "userid", "user", "uid"}),
    "item_id": frozenset({"itemid", "item", "iid", "docid", "docno"}),
    "rank": frozenset({"rank"}),
    "score": frozenset({"score", "prediction", "rating"}),
    "dataset": frozenset({"dataset"}),
}
"""The names that other tools use for each role, without case, ``_`` and ``-``."""

_ITEMS = "items"  # the column in which LensKit stores the items of a list
_SHAPE = "{query: {item: score}} or {query: [item, ...]}"

_MASK = -1e8
"""Scores up to here, as minus infinity, -1e9 and the minimum of float32, mask an item."""

_MASK_FLOAT16 = float(np.finfo(np.float16).min)

_PADDING = "-1"
"""The item with which tools fill a short list."""


@dataclass(frozen=True, eq=False)
class ListRows:
    """Rows of a file of lists.

    Args:
        path: The file.
        frame: ``query``, ``item`` and, of several datasets, ``dataset`` (codes), ``rank`` and
            ``score`` (as written; at least one); the index is the number of the row in the file.
        query_ids: The queries of the file, in order of appearance.
        item_ids: The items of the file, in order of appearance.
        dataset_ids: The labels of the datasets, or None if there is no column ``dataset``.
        locate: Returns the place of a row of the file.
        in_order: Whether rows of equal score are in list order; else in order of the item ids.
    """

    path: Path
    frame: pd.DataFrame
    query_ids: Vocabulary
    item_ids: Vocabulary
    dataset_ids: Vocabulary | None
    locate: Callable[[int], str]
    in_order: bool = False

    @property
    def queries(self) -> Codes:
        """Codes of the queries, ``int32[n]``."""
        return self.frame["query"].to_numpy()

    @property
    def items(self) -> Codes:
        """Codes of the items, ``int32[n]``."""
        return self.frame["item"].to_numpy()

    @property
    def ranks(self) -> AnyArray | None:
        """The ranks as written, ``int32[n]`` if all are whole, else ``float64[n]``; or None."""
        return self.frame["rank"].to_numpy() if "rank" in self.frame else None

    @property
    def scores(self) -> FloatArray | None:
        """The scores as written, ``float64[n]``, or None."""
        return self.frame["score"].to_numpy() if "score" in self.frame else None

    def of_dataset(self, label: str) -> ListRows:
        """Return the rows of a dataset, over the ids that occur in them.

        All rows are returned if the label is "" or the file has no column ``dataset``.

        Raises:
            UnknownIdentifier: No row belongs to that dataset.
        """
        if self.dataset_ids is None or not label:
            return self
        code = int(self.dataset_ids.find(np.array([label], dtype=object))[0])
        if code < 0:
            listed = ", ".join(map(repr, sorted(self.dataset_ids.ids)[:12])) or "none"
            message = f"no row is of the dataset {label!r}: its column 'dataset' has {listed}"
            remedy = "set such a label for the dataset, or remove the column"
            raise UnknownIdentifier(message, where=str(self.path), remedy=remedy)
        frame = self.frame[self.frame["dataset"] == code].drop(columns="dataset")
        queries, used_queries = pd.factorize(frame["query"].to_numpy())
        items, used_items = pd.factorize(frame["item"].to_numpy())
        codes = {"query": queries.astype(np.int32), "item": items.astype(np.int32)}
        query_ids, item_ids = self.query_ids.take(used_queries), self.item_ids.take(used_items)
        return replace(
            self,
            frame=frame.assign(**codes),
            query_ids=query_ids,
            item_ids=item_ids,
            dataset_ids=None,
        )

    def show_first(self) -> str:
        """Return the first row, for messages."""
        query, item = self.query_ids.ids[self.queries[0]], self.item_ids.ids[self.items[0]]
        numbers = self.frame.iloc[0].filter(["rank", "score"])
        shown = [f"{name} {number:g}" for name, number in numbers.items()]
        return ", ".join([f"query {query!r}", f"item {item!r}", *shown])

    def take(self, rows: AnyArray) -> ListRows:
        """Return some of the rows, by position or by a mask, over the same ids."""
        return replace(self, frame=self.frame.iloc[rows])

    def number(self, rows: AnyArray) -> AnyArray:
        """Return the number of rows in the file."""
        return self.frame.index.to_numpy()[rows]

    def refuse(self, is_wrong: AnyArray, problem: str, remedy: str = "") -> None:
        """Raise BrokenContract with the first wrong row of the file and the number of others."""
        if not is_wrong.any():
            return
        rows = np.flatnonzero(is_wrong)
        row = int(rows[self.number(rows).argmin()])
        item, query = self.item_ids.ids[self.items[row]], self.query_ids.ids[self.queries[row]]
        message = f"item {item!r} {problem} of query {query!r}"
        message += f", and {rows.size - 1:,} more such rows" if rows.size > 1 else ""
        raise BrokenContract(message, where=self.place(row), remedy=remedy)

    def place(self, row: int) -> str:
        """Return the place of a row: ``file:line``, or ``file: row n``."""
        return self.locate(int(self.frame.index[row]))


# ---- the layout of a file ----


def check_name(path: Path, layout: ListLayout | Literal["auto"]) -> None:
    """Raise WrongType if the suffix of a file is unknown, and no layout is named."""
    suffixes = (*_TEXT, PARQUET, *_BY_NAME)
    if layout == "auto" and get_suffix(path) not in suffixes:
        message = f"{path.name} does not have the suffix of a file of lists"
        remedy = f"name it {', '.join(suffixes)} (also with .gz), or set its layout"
        raise WrongType(message, where="path", remedy=remedy)


def detect_layout(path: Path) -> ListLayout:
    """Return the layout of a file, by its name and, if that leaves it open, its first line.

    ``.json`` is ``ranx``; ``.trec`` and ``.run`` are ``trec``; Parquet is ``lenskit`` if it has a
    column ``items`` of lists, else ``table``. Any other file is ``recbole`` if each cell of the
    first line is a name with a type, ``elliot`` if it has three cells separated by tabs of which
    the third is a number, ``trec`` if it has six cells of which the fourth and fifth are numbers,
    and ``table`` otherwise.
    """
    suffix = get_suffix(path)
    if suffix == PARQUET:
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


class _Content(NamedTuple):
    """The Arrow columns of a file by role, what places a row, and the names of its columns."""

    columns: Mapping[str, Any]
    locate: Callable[[int], str]
    in_order: bool = False
    roles: Mapping[str, str] = {}


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
        AmbiguousLayout: The numbers of an ``elliot`` or ``ranx`` file may be ranks or scores.
        Contradiction: The layout has no names of columns, or two are the same after renaming.
    """
    require_file(path)
    used_layout = detect_layout(path) if layout == "auto" else layout
    if columns and used_layout not in {"table", "recbole", "lenskit"}:
        message = f"{path.name} was read as {used_layout}, which does not name its columns"
        raise Contradiction(message, where="columns", remedy="remove columns, or change layout")
    content = _READERS[used_layout](path, order, dict(columns))
    rows = _encode_rows(path, content)
    by_line = layout == "auto" and get_suffix(path) not in {*_BY_NAME, PARQUET}
    usual = {*content.roles, "user_id", *dict(columns)}
    inferred = [f"{x} is the {role}" for role, x in content.roles.items() if x not in usual]
    is_guess = by_line and used_layout != "table"
    if inferred or is_guess:
        shown = [rows.show_first()] if is_guess and len(rows.frame) else []
        warn("; ".join([f"{path.name} was read as {used_layout}", *shown, *inferred]))
    if used_layout == "trec":
        rows = _rank_equal_ranks(rows)
    if order == "auto" and _may_be_ranks(rows):
        if used_layout in {"elliot", "ranx"}:
            counted = "its numbers count up in each list, as ranks do, or scores"
            message, remedy = f"{counted}: {rows.show_first()}", "set order: rank, or order: score"
            raise AmbiguousLayout(message, where=rows.place(0), remedy=remedy)
        remedy = f"if they are ranks, columns: {{{content.roles['score']}: rank}}"
        warn(f"{path.name}: the scores count up in each list, as ranks do: {remedy}")
    return _select_order(rows, order)


def _encode_rows(path: Path, content: _Content) -> ListRows:
    ids: dict[str, Vocabulary] = {}
    columns: dict[str, AnyArray] = {}
    for role, column in content.columns.items():
        name = role.removesuffix("_id")
        if _KINDS.get(role) == "id":
            encoded = column.cast(pa.string()).dictionary_encode().combine_chunks()
            ids[name] = Vocabulary(np.array(encoded.dictionary.to_pylist(), dtype=object))
            columns[name] = encoded.indices.to_numpy().astype(np.int32, copy=False)
            if "" in ids[name].ids:
                row = int((ids[name].ids[columns[name]] == "").argmax())
                raise MalformedLine(f"{role} is empty", where=content.locate(row))
        elif role in _KINDS:
            numbers = column.cast(pa.float64(), safe=False)
            if role == "rank":
                with suppress(pa.ArrowInvalid):  # as small numbers, if they are whole
                    numbers = numbers.cast(pa.int32())
            columns[name] = np.asarray(numbers)
    return ListRows(
        path=path,
        frame=pd.DataFrame(columns),
        query_ids=ids["query"],
        item_ids=ids["item"],
        dataset_ids=ids.get("dataset"),
        locate=content.locate,
        in_order=content.in_order,
    )


def _rank_equal_ranks(rows: ListRows) -> ListRows:
    """Return the rows of a TREC run; if all ranks of a list are equal, ranked as by trec_eval.

    That is by score, equal ones by item from the last to the first.
    """
    ranks = rows.frame.groupby("query")["rank"]
    if (ranks.min() != ranks.max()).any() or not (ranks.size() > 1).any():
        return rows
    warn(f"{rows.path.name}: the ranks of each list are equal: it is ordered as by trec_eval")
    positions = np.argsort(np.argsort(rows.item_ids.ids))
    order = np.lexsort((-positions[rows.items], -rows.frame["score"], rows.queries))
    by_score = np.empty(order.size)
    by_score[order] = np.arange(order.size)
    return replace(rows, frame=rows.frame.assign(rank=by_score))


def _may_be_ranks(rows: ListRows) -> bool:
    """Return whether the scores of each list, without ranks, are whole numbers that count up."""
    if {"rank", "score"} & {*rows.frame} != {"score"}:
        return False
    scores = rows.frame["score"]
    for part in (scores.iloc[:1_000], scores):
        if (part < 0).any() or (np.rint(part) != part).any():
            return False
    lists = scores.groupby(rows.queries)
    rises = lists.diff().dropna() > 0
    is_count = any((lists.rank() - first == scores).all() for first in (0, 1))
    return bool(rises.any() if is_count else rises.size and rises.all())


def _select_order(rows: ListRows, order: ListOrder) -> ListRows:
    """Return the rows with the one column that orders them; both may be there for ``auto``."""
    if order == "auto":
        return rows
    frame, others = rows.frame, ["score" if order == "rank" else "rank"]
    if order == "rows":
        others = ["score"]
        frame = frame.assign(rank=frame.groupby("query").cumcount() + 1.0)
    elif order not in frame:
        raise UnknownColumn(f"there is no {order}", where=str(rows.path), remedy="change order")
    return replace(rows, frame=frame.drop(columns=others, errors="ignore"))


# ---- the order of lists ----


def order_rows(rows: ListRows, dataset: str = "") -> ListRows:
    """Return the rows of a dataset, list by list, the best item first.

    Rows that mask an item, with a score of -1e8 or less or the minimum of float16, or that fill a
    list, with the item -1, are excluded with a warning.

    Raises:
        UnknownIdentifier: No row belongs to the dataset.
        BrokenContract: A list contains an item or a rank twice, a rank that is not a whole
            number, a score of NaN, or scores that increase with the rank.
    """
    rows = rows.of_dataset(dataset)
    is_masked = rows.item_ids.ids[rows.items] == _PADDING
    if rows.scores is not None:
        is_masked |= (rows.scores <= _MASK) | (rows.scores == _MASK_FLOAT16)
    if n_masked := int(is_masked.sum()):
        kinds = "a score of -1e8 or less, or the minimum of float16, or the item -1"
        warn(f"{rows.path.name}: {n_masked:,} rows are excluded as masks: {kinds}")
        rows = rows.take(~is_masked)
    order = _sort(rows)
    rows = rows if order is None else rows.take(order)
    _validate_lists(rows)
    return rows


def _sort(rows: ListRows) -> npt.NDArray[np.int64] | None:
    """Return the order of the rows; None if it is that of the file."""
    if rows.ranks is not None:
        queries, ranks = rows.queries, rows.ranks
        follows = (queries[1:] == queries[:-1]) & (ranks[1:] > ranks[:-1])
        if ((queries[1:] > queries[:-1]) | follows).all():
            return None
        return np.lexsort((rows.ranks, rows.queries))
    scores = rows.scores if rows.scores is not None else np.zeros(len(rows.frame))
    if rows.in_order:
        return np.lexsort((-scores, rows.queries))
    positions = np.empty(len(rows.item_ids), dtype=np.int64)
    positions[sort_naturally(rows.item_ids.ids)] = np.arange(positions.size)
    return np.lexsort((positions[rows.items], -scores, rows.queries))


def _validate_lists(rows: ListRows) -> None:
    keys = rows.queries.astype(np.int64) * len(rows.item_ids) + rows.items
    if count_distinct(keys) < keys.size:
        in_file = pd.Series(keys, rows.frame.index).sort_index()
        is_repeated = in_file.duplicated()[rows.frame.index].to_numpy()
        rows.refuse(is_repeated, "occurs twice in the list")
    follows = np.zeros(keys.size, dtype=bool)  # the row before is of the same list
    follows[1:] = rows.queries[1:] == rows.queries[:-1]
    if rows.ranks is not None:
        is_whole = np.isfinite(rows.ranks) & (np.floor(rows.ranks) == rows.ranks)
        rows.refuse(~is_whole, "has a rank that is not a whole number")
        rows.refuse(follows & (np.roll(rows.ranks, 1) == rows.ranks), "repeats a rank in the list")
    if rows.scores is not None:
        rows.refuse(np.isnan(rows.scores), "has a score of NaN")
        message = "has a higher score than the item ranked before it"
        remedy = "correct the lists, or set order: rank or order: score"
        rows.refuse(follows & (rows.scores > np.roll(rows.scores, 1)), message, remedy)


def check_list_ids(rows: ListRows, queries: Queries, data: TrainingData) -> None:
    """Refuse a file of which no query or no item is known; warn of unknown items.

    Raises:
        UnknownIdentifier: No query of the file is one of the run or a user of the dataset, or no
            item is in the dataset.
    """
    where, asked, items = str(rows.path), queries.ids, data.train.item_ids
    is_listed = np.zeros(len(rows.item_ids), dtype=bool)
    is_listed[rows.items] = True
    query_ids, item_ids = rows.query_ids.ids, rows.item_ids.ids[is_listed]
    question_ids(item_ids, "items", rows.path.name)
    if asked.has_any(query_ids) or not data.train.user_ids.has_any(query_ids):
        is_swapped = items.has_any(query_ids) and asked.has_any(item_ids)
        remedy = "its columns of queries and items look swapped" if is_swapped else ""
        check_ids(query_ids, asked, "queries", where, may_lack=True, remedy=remedy)
    check_ids(item_ids, items, "items", where)


# ---- readers ----


@dataclass
class _Roles:
    """Chooses the columns of a table: ``query_id``, ``item_id`` and ``rank``, ``score`` or both.

    >>> roles = _Roles({}, ordered=False)
    >>> _ = roles(["userId", "item", "prediction", "fold"], "mine.csv:1")
    >>> roles.chosen
    {'query_id': 'userId', 'item_id': 'item', 'score': 'prediction'}

    Args:
        renamed: The new names of columns.
        ordered: Whether the rows are in list order, so that no column has to say it.
        chosen: The name in the file of each role.
    """

    renamed: Mapping[str, str]
    ordered: bool
    chosen: dict[str, str] = field(default_factory=dict)

    def __call__(self, file_names: Sequence[str], where: str) -> Selected:
        sources = rename_all(file_names, self.renamed, where)
        names = [*sources]
        roles = {role: name for role in _ALIASES if (name := _find_column(role, names, where))}
        missing = [role for role in ("query_id", "item_id") if role not in roles]
        is_ordered = self.ordered or {"rank", "score"} & set(roles)
        if missing:
            missing += ["rank"] * (not is_ordered)
            error = make_unknown(missing, names, where, roles.values())
            raise explain_header(error, names, roles.values(), "query_id,item_id,rank")
        if not is_ordered:
            remedy = (
                "give each row a rank (1 is the best), a score, or both; "
                "if the lines are in list order, set order: rows"
            )
            raise UnknownColumn("neither a column 'rank' nor 'score'", where=where, remedy=remedy)
        self.chosen = {role: sources[name] for role, name in roles.items()}
        return {role: (name, _KINDS[role]) for role, name in self.chosen.items()}


def _find_column(role: str, names: Sequence[str], where: str) -> str | None:
    exact = [name for name in names if name == role]
    matches = exact or [name for name in names if normalize_name(name) in _ALIASES[role]]
    if len(matches) < 2:
        return matches[0] if matches else None
    listed = " and ".join(map(repr, matches))
    remedy = f"rename the right one to {role!r}"
    raise MalformedLine(f"{listed} may each be the {role}", where=where, remedy=remedy)


def _read_table(
    path: Path, order: ListOrder, renamed: Mapping[str, str], *, in_order: bool = False
) -> _Content:
    """Read a table with a header; its rows are ``in_order`` in the layout of RecBole."""
    roles = _Roles(renamed, ordered=in_order or order == "rows")
    table = read_file(path, roles)
    columns = {role: table[role] for role in table.columns}
    return _Content(columns, table.place, in_order, roles.chosen)


def _read_plain(
    path: Path, delimiter: str, names: Sequence[str], *, in_order: bool = False
) -> _Content:
    """Read a file without a header."""
    kinds: dict[str, Kind] = {name: _KINDS.get(name, "text") for name in names}
    layout = Layout(columns=kinds, delimiter=delimiter, header=False, quoted=bool(delimiter))
    table = read_table(path, layout)
    return _Content({name: table[name] for name in names}, table.place, in_order)


def _read_elliot(path: Path, order: ListOrder, _renamed: Mapping[str, str]) -> _Content:
    """Read user, item and score separated by tabs."""
    names = ("query_id", "item_id", "rank" if order == "rank" else "score")
    return _read_plain(path, TAB, names, in_order=True)


def _read_run(path: Path, _order: ListOrder, _renamed: Mapping[str, str]) -> _Content:
    """Read a TREC run: query, Q0, item, rank, score and tag, separated by blanks."""
    return _read_plain(path, "", ("query_id", "iteration", "item_id", "rank", "score", "tag"))


def _read_json(path: Path, order: ListOrder, _renamed: Mapping[str, str]) -> _Content:
    """Read a JSON file of lists; equal scores are in file order."""
    queries, items, numbers, locate = read_queries(path, _SHAPE, may_rank=True)
    if not set(map(type, items)) <= {str, int}:
        raise MalformedLine("an item is a text or a whole number", where=str(path))
    columns = {"query_id": queries, "item_id": [str(item) for item in items]}
    arrays = {name: pa.chunked_array([cells], pa.string()) for name, cells in columns.items()}
    if numbers is not None:
        arrays["rank" if order == "rank" else "score"] = pa.chunked_array([numbers])
    return _Content(arrays, locate, in_order=True)


def _is_nested(path: Path) -> bool:
    """Return whether each row of a Parquet file is a list, as in LensKit's layout."""
    schema = read_schema(path)
    if _ITEMS not in schema.names:
        return False
    column_type = schema.field(_ITEMS).type
    is_list = pa.types.is_list(column_type) or pa.types.is_large_list(column_type)
    return bool(is_list and pa.types.is_struct(column_type.value_type))


def _read_lenskit(path: Path, order: ListOrder, renamed: Mapping[str, str]) -> _Content:
    """Read LensKit's Parquet layout, or a table."""
    if get_suffix(path) != PARQUET or not _is_nested(path):
        return _read_table(path, order, renamed)
    raw = read_parquet(path)
    lists = raw[_ITEMS].combine_chunks()
    parents, items = compute.list_parent_indices(lists), compute.list_flatten(lists)
    fields = {name: raw[name].take(parents) for name in raw.column_names if name != _ITEMS}
    for part, values in zip(items.type, items.flatten(), strict=True):
        fields[part.name] = pa.chunked_array([values])
    roles = _Roles(renamed, ordered=True)
    columns = {
        role: cast_cells(fields[name], kind, f"{path}: {role}")
        for role, (name, kind) in roles([*fields], str(path)).items()
    }
    rows = parents.to_numpy()
    if not {"rank", "score"} & {*columns}:
        starts = np.searchsorted(rows, rows)
        columns["rank"] = pa.chunked_array([np.arange(1, rows.size + 1) - starts])
    return _Content(columns, lambda row: locate_row(path, int(rows[row])), roles=roles.chosen)


_READERS: Mapping[ListLayout, Callable[[Path, ListOrder, Mapping[str, str]], _Content]] = {
    "table": _read_table,
    "trec": _read_run,
    "elliot": _read_elliot,
    "recbole": partial(_read_table, in_order=True),
    "ranx": _read_json,
    "lenskit": _read_lenskit,
}
