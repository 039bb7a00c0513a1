"""Published datasets that a YAML file in ``datasets/`` declares, and the loader of all of them.

The keys of a declaration:

- ``title``, ``about``, ``source``, ``licence``, ``citation``, ``counts``; ``like`` names a
  declaration whose keys it has where it has none of its own.
- ``download``: the keys of ``sources.yaml``; ``files`` and ``holds`` are those of the tables by
  default, and ``each`` lists settings for whose choices there is a download of its own.
- ``settings``: ``{name: {choices, about}}``; ``{name}`` in the name of a file is the choice, the
  first one by default. Choices may be lists: a file for each element. ``forms`` are choices of
  the setting ``form`` that replace keys.
- ``interactions``, ``users``, ``items``, ``reviews``, and ``joined``: columns of items from files
  with a row for each item and value. Their keys are the fields of ``_Table``, and of ``_Column``
  by its name; what has a ``side`` is read with that setting only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from recbias.core.context import warn
from recbias.core.dataset import (
    SEPARATOR,
    AnyArray,
    Attributes,
    Codes,
    Dataset,
    Interactions,
    Reviews,
    Vocabulary,
)
from recbias.core.errors import MissingFile
from recbias.core.files import has_file
from recbias.data.tables import match_reviews
from recbias.formats.delimited import BadLines, Layout, Table, read_table
from recbias.formats.identifiers import align_columns, encode, scatter, to_texts
from recbias.formats.interactions import to_seconds
from recbias.formats.json_files import read_json_lines
from recbias.formats.tables import decode_dictionary, locate_row, read_parquet
from recbias.formats.text_files import find_line, shorten

FOLDER = Path(__file__).with_name("datasets")
_IDS = ("user_id", "item_id")
_TABLES = ("interactions", "users", "items", "reviews")
_ROLES = (*_IDS, "rating", "timestamp", "text")
"""The columns of interactions; others are columns of the items."""


@dataclass(frozen=True)
class Folder:
    """Reads the files of a dataset; ``skipped`` counts the malformed lines of each."""

    path: Path
    bad_lines: BadLines = "error"
    skipped: dict[str, int] = field(default_factory=dict)

    def read(
        self,
        name: str,
        columns: Any,
        *,
        keep: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> Table:
        """Read a file: delimited text with a ``Layout``, JSON lines with a ``pyarrow.Schema``."""
        path = self.path / name
        if isinstance(columns, Layout):
            rows = read_table(path, columns, bad_lines=self.bad_lines, keep=keep)
        else:
            rows = read_json_lines(path, columns, bad_lines=self.bad_lines, keep=keep, **options)
        self.skipped[name] = rows.bad_lines
        return rows

    @property
    def counts(self) -> dict[str, int]:
        """``bad_lines`` of all files together, for ``Dataset.counts``."""
        return {"bad_lines": sum(self.skipped.values())}


def find_folder(name: str, data: Path, *, holds: str, inner: str = "") -> Path:
    """Return the folder of a dataset: ``<data>/<name>``, or as its archive unpacks.

    It is identified by the file ``holds``; ``inner`` is the folder inside the archive.
    """
    folders = [data / name, *([data / name / inner, data / inner] if inner else [])]
    return next(
        (folder for folder in folders if has_file(find_packed(folder / holds))), folders[0]
    )


def find_packed(path: Path) -> Path:
    """Return the path of a file that may stand there with or without ``.gz``."""
    other = path.with_suffix("") if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")
    return other if has_file(other) and not has_file(path) else path


def require_files(paths: Sequence[Path], *, fetch: str) -> list[Path]:
    """Return the paths if all files exist.

    Raises:
        MissingFile: A file does not exist; the remedy is ``recbias data fetch`` with ``fetch``.
    """
    for path in paths:
        if not has_file(path):
            message = f"{fetch} lacks the file {path.name}"
            remedy = f"recbias data fetch {fetch}, or set --data to the folder that contains it"
            raise MissingFile(message, where=str(path), remedy=remedy)
    return list(paths)


@cache
def read_declaration(name: str) -> Mapping[str, Any]:
    """Return the declaration of a dataset, with the keys of the one that it is ``like``."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    loader = vars(yaml).get("CSafeLoader", yaml.SafeLoader)  # libyaml is 7 times faster
    entry: dict[str, Any] = loader(text).get_single_data()
    base = read_declaration(entry["like"]) if "like" in entry else {}
    return {**base, **entry, "name": name}


def list_declared() -> list[str]:
    """Return the names of the declared datasets."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A column of a file, and how its cells are read.

    ``source`` names it in the file, by default as it is called; of several names, the cells are
    joined by ``/``. ``key`` is that of the JSON object, or of those of a ``list``, in a cell. In
    this order: ``expand`` makes a row of each part between such marks; ``match`` keeps what its
    group ``value`` matches (of parts, those that match); ``fallback`` is the column for an empty
    cell; ``split`` is the mark between several values; ``missing`` are values that mean none;
    ``values`` are those of the codes from 0; ``labels`` are names for reports; numbers outside a
    ``range`` are missing. Types: those of ``Layout``; ``number`` (other text is missing); ``time``
    (ISO 8601, or ``format``); ``list`` (of JSON, of which the ``first`` few are read); ``skip``.
    """

    name: str
    source: str | list[str] = ""
    type: str = "text"
    expand: str = ""
    match: str = ""
    fallback: str = ""
    key: str = ""
    first: int = 2**31 - 1
    trim: bool = False
    split: str = ""
    missing: Sequence[str] = ()
    values: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    range: Sequence[float] = ()
    format: str = ""
    unit: Literal["s", "ms"] = "s"

    @property
    def sources(self) -> list[str]:
        """The names in the file."""
        return self.source if isinstance(self.source, list) else [self.source or self.name]

    def parse_times(self, cells: Any) -> Any:
        """Return seconds since 1970, null where a cell is no time."""
        if self.format:
            times = pc.strptime(cells, format=self.format, unit="s", error_is_null=True)
            return times.cast(pa.int64())
        seconds, is_wrong = to_seconds(pc.fill_null(cells, ""))
        return pa.chunked_array([pa.array(seconds, mask=is_wrong)])


@dataclass(frozen=True, kw_only=True)
class _Table:
    """A file of a dataset, or several of one layout.

    ``format`` is ``delimited``, ``json``, ``python`` (a dictionary of Python on each line) or
    ``parquet``. ``where`` selects rows by a number in a column. ``flags`` are columns of 0 and 1
    that make one of ``a|b``. ``known`` restricts the file to users or items of the interactions,
    ``distinct`` keeps the first row of each, ``drop`` leaves out rows without an identifier.
    Names of counts: ``unlisted`` that of interactions with items that are not listed, which are
    excluded, ``dropped`` that of interactions that the dataset leaves out, ``unrated`` that of
    reviews without a rating. ``names`` is a file with the name of each value of a joined table.
    """

    files: Sequence[str]
    columns: Sequence[_Column]
    format: str = "delimited"
    separator: str = ","
    header: bool = True
    quoted: bool = False
    escaped: bool = False
    encoding: str = "utf-8"
    where: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known: bool = False
    distinct: bool = False
    drop: bool = False
    unlisted: str = ""
    dropped: str = ""
    unrated: str = ""
    names: _Table | None = None

    @classmethod
    def parse(
        cls, entry: Mapping[str, Any], choices: Mapping[str, Any], side: Sequence[str]
    ) -> _Table:
        """Return the table of an entry: its files for some choices, its columns for some sides."""
        settings = {key: x for key, x in entry.items() if key not in {"file", "columns", "side"}}
        if "names" in settings:
            settings["names"] = cls.parse(settings["names"], choices, side)
        files = [
            entry["file"].format(**dict(zip(choices, chosen, strict=True)))
            for chosen in product(*choices.values())
        ]
        columns = []
        for name, x in entry["columns"].items():
            options = {"type": x} if isinstance(x, str) else dict(x)
            if options.pop("side", None) in {None, *side}:
                columns.append(_Column(name=name, **options))
        return cls(files=list(dict.fromkeys(files)), columns=columns, **settings)

    @property
    def layout(self) -> Layout:
        """The layout of delimited text."""
        others = {"number": "text", "time": "text", "skip": "text"}
        kinds: dict[str, Any] = {}
        for column in self.columns:
            for name in column.sources:
                kinds.setdefault(name, others.get(column.type, column.type))
        kinds |= {flag: "int32" for flags in self.flags.values() for flag in flags}
        return Layout(
            columns=kinds,
            delimiter=self.separator,
            header=self.header,
            quoted=self.quoted,
            escaped=self.escaped,
            encoding=self.encoding,
        )

    @property
    def schema(self) -> Any:
        """The fields of JSON lines."""
        kinds: dict[str, Any] = {}
        for column in self.columns:
            is_number = column.type in {"float32", "float64"}
            kind = pa.float64() if is_number else pa.string()
            kind = pa.struct([(column.key, kind)]) if column.key else kind
            kinds[column.sources[0]] = pa.list_(kind) if column.type == "list" else kind
        return pa.schema(kinds)

    @property
    def value_labels(self) -> dict[str, Mapping[str, str]]:
        """The names of coded values by column and value."""
        return {column.name: column.labels for column in self.columns if column.labels}

    def read(self, folder: Folder, keep: Callable[[Any], Any] = lambda rows: rows) -> Table:
        """Return the columns of the files, of the rows to ``keep``."""
        tables = [self._read_file(folder, name, keep) for name in self.files]
        return replace(tables[0], cells=pa.concat_tables([table.cells for table in tables]))

    def _read_file(self, folder: Folder, name: str, keep: Callable[[Any], Any]) -> Table:
        path = find_packed(folder.path / name)
        if self.format == "parquet":
            names = [source for column in self.columns for source in column.sources]
            raw = read_parquet(path, list(dict.fromkeys(names)))
            plain = {name: decode_dictionary(raw[name]) for name in raw.column_names}
            cells = keep(self.convert(pa.table(plain), path, folder))
            return Table(path, cells, partial(locate_row, path))
        columns: Any = self.layout
        options: dict[str, Any] = {}
        if self.format != "delimited":
            ids = [column.sources[0] for column in self.columns if column.name in _IDS]
            columns = self.schema
            options = {"needed": [] if self.drop else ids, "is_python": self.format == "python"}
        name = str(path.relative_to(folder.path))
        return folder.read(
            name, columns, keep=lambda raw: keep(self.convert(raw, path, folder)), **options
        )

    def convert(self, raw: Any, path: Path, folder: Folder) -> Any:
        """Return the columns of some rows of a file."""
        raw = raw.drop_columns([column.name for column in self.columns if column.type == "skip"])
        for column in self.columns:
            raw = _expand(raw, column) if column.expand else raw
        for name, number in self.where.items():
            raw = raw.filter(pc.equal(raw[name], number))
        for column in self.columns:
            raw = _parse_times(raw, column, path, folder) if column.type == "time" else raw
        cells = {
            column.name: _convert(raw, column)
            for column in self.columns
            if column.type != "skip" and column.name not in self.where
        }
        cells |= {name: _join_flags(raw, flags) for name, flags in self.flags.items()}
        table = pa.table(cells)
        for name in cells.keys() & {*_IDS} if self.drop else ():
            table = table.filter(pc.not_equal(pc.fill_null(table[name], ""), ""))
        return table

    def label(self, table: Table) -> dict[str, AnyArray]:
        """Return the columns besides the identifiers, with the labels of codes."""
        values = {column.name: column.values for column in self.columns if column.values}
        columns = {name: _to_array(table[name]) for name in table.columns if name not in _IDS}
        for name, labels in values.items():
            codes, names = table.numbers(name), np.array(labels, dtype=object)
            is_wrong = (codes < 0) | (codes >= names.size)
            table.refuse(is_wrong, f"{name} is not one of its {names.size} codes")
            columns[name] = names[codes]
        for name, (low, high) in {x.name: x.range for x in self.columns if x.range}.items():
            is_wrong = (columns[name] < low) | (columns[name] > high)
            columns[name] = np.where(is_wrong, np.nan, columns[name])
            if n := np.count_nonzero(is_wrong):
                cells = f"{n:,} cell(s) of {name} outside {low} to {high}"
                warn(f"{self.files[0]}: {cells} are taken as missing")
        return columns


def _expand(raw: Any, column: _Column) -> Any:
    """Return a row for each part of a cell that matches, with the cells of the other columns."""
    parts = pc.split_pattern(raw[column.sources[0]].combine_chunks(), column.expand)
    matches = pc.struct_field(pc.extract_regex(pc.list_flatten(parts), column.match), "value")
    rows = raw.drop_columns(column.sources[0]).take(
        pc.list_parent_indices(parts).filter(matches.is_valid())
    )
    return rows.append_column(column.sources[0], matches.drop_null())


def _parse_times(raw: Any, column: _Column, path: Path, folder: Folder) -> Any:
    """Return rows with their times; a row with a text that is no time is malformed."""
    (name,) = column.sources
    texts = raw[name]
    times = column.parse_times(texts)
    raw = raw.set_column(raw.column_names.index(name), name, times)
    is_wrong = pc.and_(times.is_null(), pc.not_equal(pc.fill_null(texts, ""), "")).to_numpy()
    if not is_wrong.any():
        return raw
    problem = f"the {column.name} {shorten(texts[int(is_wrong.argmax())].as_py())} is not a time"
    rows = Table(path, raw, lambda row: find_line(path, texts[row].as_py()))
    kept = rows.without(is_wrong, problem, folder.bad_lines)
    folder.skipped[f"{path}: times"] = folder.skipped.get(f"{path}: times", 0) + kept.bad_lines
    return kept.cells


def _convert(raw: Any, column: _Column) -> Any:
    cells = raw[column.sources[0]]
    if column.type == "list":
        return _join_lists(cells.combine_chunks(), column)
    if len(column.sources) > 1:
        cells = pc.binary_join_element_wise(*(raw[name] for name in column.sources), "/")
    cells = pc.struct_field(cells, column.key) if column.key else cells
    cells = _edit_text(raw, cells, column)
    if column.type == "number":
        texts = pd.Series(cells.to_pandas(), dtype=object)
        cells = pa.chunked_array([pa.array(pd.to_numeric(texts, errors="coerce"), pa.float64())])
    return pc.floor(pc.divide(cells, 1000)) if column.unit == "ms" else cells


def _edit_text(raw: Any, cells: Any, column: _Column) -> Any:
    if column.match and not column.expand:
        cells = pc.struct_field(pc.extract_regex(cells, column.match), "value")
    if column.fallback:
        is_empty = pc.equal(pc.fill_null(cells, ""), "")
        cells = pc.if_else(is_empty, raw[column.fallback], cells)
    if column.trim:
        cells = pc.utf8_trim_whitespace(cells)
    if column.split:
        cells = pc.replace_substring_regex(cells, rf"{re.escape(column.split)}\s*", SEPARATOR)
    if column.missing:
        is_missing = pc.is_in(cells, value_set=pa.array(column.missing))
        cells = pc.if_else(is_missing, pa.scalar(None, pa.string()), cells)
    return cells


def _join_lists(lists: Any, column: _Column) -> Any:
    """Return the first texts of each list as ``a|b``."""
    lists = pc.list_slice(pc.fill_null(lists, []), 0, column.first)
    cells = pc.list_flatten(lists)
    cells = pc.struct_field(cells, column.key) if column.key else cells
    parts = pc.replace_substring(pc.fill_null(cells, ""), SEPARATOR, "/")
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())])
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), parts), SEPARATOR)
    return pa.chunked_array([joined])


def _join_flags(raw: Any, flags: Sequence[str]) -> Any:
    """Return ``A|B`` for columns of 0 and 1."""
    is_set = raw.select(flags).to_pandas() == 1
    joined = is_set.dot(np.array([SEPARATOR + flag for flag in flags], dtype=object))
    return pa.chunked_array([pa.array(joined.str.removeprefix(SEPARATOR), pa.string())])


def _to_array(column: Any) -> AnyArray:
    """Return a column as numbers, or as text with None for an empty cell."""
    if pa.types.is_string(column.type):
        return to_texts(column)
    return np.asarray(column.to_numpy(), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Base of the declared datasets; the docstring is written from the declaration."""

    declaration: ClassVar[Mapping[str, Any]]

    bad_lines: BadLines = "error"

    def __init_subclass__(cls, declaration: str = "") -> None:
        """Read the declaration."""
        super().__init_subclass__()
        if declaration:
            cls.declaration = read_declaration(declaration)
            cls.__doc__ = _write_docstring(cls.declaration)

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        tables = self.read_tables()
        has_items = tables.keys() - {*_TABLES} or _list_item_columns(tables)
        has_texts = any(column.name == "text" for column in tables["interactions"].columns)
        given = ["train", *["items"] * bool(has_items), *["reviews"] * has_texts]
        return frozenset(given) | (tables.keys() & {*_TABLES[1:]})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        folder = self.find_folder(data)
        paths = [find_packed(folder / name) for name in self.list_files()]
        return require_files(paths, fetch=self.fetch_name)

    def list_files(self) -> list[str]:
        """Return the names of the files that the settings need."""
        tables = self.read_tables().values()
        used = [*tables, *(table.names for table in tables if table.names)]
        return list(dict.fromkeys(name for table in used for name in table.files))

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        folder, tables = Folder(self.find_folder(data), self.bad_lines), self.read_tables()
        own = {name: tables[name].read(folder) for name in ("users", "items") if name in tables}
        listed = own["items"].cells if "items" in own else None
        selected = None if listed is None else self.select_items(listed)
        if listed is not None:
            own["items"] = replace(own["items"], cells=selected)
        table = tables.pop("interactions")
        rows, counts = self._read_rows(table, folder, selected, is_complete=selected is listed)
        user_codes, users = _encode(rows, own.get("users"), tables.pop("users", None), "user")
        item_codes, items = _encode(rows, own.get("items"), tables.pop("items", None), "item")
        reviews, others = None, tables.pop("reviews", None)
        if "text" in rows.column_names:
            texts = np.asarray(pc.fill_null(rows["text"], "").to_numpy(), dtype=object)
            reviews = Reviews(user_codes, item_codes, texts)
        elif others is not None:
            texts = others.read(folder).cells
            reviews = match_reviews(others.files[0], texts, users.ids, items.ids)
        columns = {
            name: _read_first(rows[name], item_codes, len(items.ids))
            for name in _list_item_columns({"interactions": table})
        }
        columns |= {name: _read_joined(other, folder, items.ids) for name, other in tables.items()}
        columns |= self.read_columns(folder, data, items)
        values = np.ones(len(user_codes), dtype=np.float32)
        if "rating" in rows.column_names:
            rated = rows["rating"].is_valid().to_numpy()
            counts |= {table.unrated: rated.size - int(rated.sum())} if table.unrated else {}
            rows, user_codes, item_codes = rows.filter(rated), user_codes[rated], item_codes[rated]
            values = rows["rating"].to_numpy().astype(np.float32, copy=False)
        times, given = _read_times(rows, table.files[0]), self.gives()
        items = replace(items, frame=items.frame.assign(**columns))
        return Dataset(
            Interactions(user_codes, item_codes, values, times, users.ids, items.ids),
            users if "users" in given else None,
            items if "items" in given else None,
            reviews,
            counts=folder.counts | counts,
        )

    def _read_rows(
        self, table: _Table, folder: Folder, items: Any, *, is_complete: bool
    ) -> tuple[Any, dict[str, int]]:
        """Return the interactions, and how many were left out for which reason.

        Nothing is counted unless the table of items is complete: then it was on purpose.
        """
        counts = dict.fromkeys(filter(None, [table.unlisted, table.dropped]), 0)
        listed = pc.unique(items["item_id"]) if table.unlisted else None

        def keep(rows: Any) -> Any:
            if listed is not None:
                n_rows = rows.num_rows
                rows = rows.filter(pc.is_in(rows["item_id"], value_set=listed))
                counts[table.unlisted] += n_rows - rows.num_rows
            kept = self.keep_rows(rows)
            if table.dropped:
                counts[table.dropped] += rows.num_rows - kept.num_rows
            return kept

        rows = table.read(folder, keep).cells
        if not is_complete:
            return rows, {}
        for problem, n in counts.items():
            if n:
                reason = problem.replace("_", " ")
                warn(f"{table.files[0]}: excluded {n:,} row(s): {reason}")
        return rows, counts

    def keep_rows(self, rows: Any) -> Any:
        """Return some of the interactions of a block."""
        return rows

    def select_items(self, items: Any) -> Any:
        """Return the rows of the table of items that are in the dataset."""
        return items

    def list_sides(self) -> tuple[str, ...]:
        """Return the names of the optional tables and columns that are read."""
        return getattr(self, "side", ())

    def read_columns(
        self, folder: Folder, data: Path, items: Attributes
    ) -> Mapping[str, AnyArray]:
        """Return more columns of the items, for formats that need code."""
        return {}

    def find_folder(self, data: Path) -> Path:
        """Return the folder of the files."""
        name, holds = self.declaration["name"], self.read_tables()["interactions"].files[0]
        inner = self.declaration.get("download", {}).get("inner", name)
        return find_folder(getattr(self, "folder", name), data, holds=holds, inner=inner)

    @property
    def value_labels(self) -> dict[str, Mapping[str, str]]:
        """The names of coded values by column and value, for reports."""
        tables = self.read_tables().values()
        return {name: labels for table in tables for name, labels in table.value_labels.items()}

    @property
    def fetch_name(self) -> str:
        """The name that ``recbias data fetch`` takes; it has the settings other than defaults."""
        each = self.declaration["download"].get("each", ())
        chosen = [
            getattr(self, name)
            for name in each
            if getattr(self, name) != getattr(type(self), name)
        ]
        return "-".join([self.declaration["name"], *chosen])

    def read_tables(self) -> dict[str, _Table]:
        """Return the tables for the settings: the interactions, users, items and joined ones."""
        entry, choices = dict(self.declaration), dict[str, Any]()
        if "forms" in entry:
            entry |= entry["forms"][getattr(self, "form")]  # noqa: B009  a setting of some
        for name, setting in entry.get("settings", {}).items():
            chosen, among = getattr(self, name), setting["choices"]
            choices[name] = among[chosen] if isinstance(among, Mapping) else [chosen]
        entries = {name: entry[name] for name in _TABLES if entry.get(name)}
        side = self.list_sides()
        return {
            name: _Table.parse(table, choices, side)
            for name, table in (entries | entry.get("joined", {})).items()
            if table.get("side") in {None, *side}
        }


def _list_item_columns(tables: Mapping[str, _Table]) -> list[str]:
    """Return the columns of the interactions that are of their items."""
    table = tables["interactions"]
    names = [column.name for column in table.columns if column.type != "skip"]
    return [name for name in names if name not in {*_ROLES, *table.where}]


def _encode(
    rows: Any, own: Table | None, table: _Table | None, kind: str
) -> tuple[Codes, Attributes]:
    """Return the user or item of each interaction, and the columns of all of them."""
    key = f"{kind}_id"
    if table is None or own is None:
        ids, (codes,) = encode(rows[key])
        return codes, Attributes(ids, pd.DataFrame(index=range(len(ids))), kind)
    if table.known:
        own = own.take(pc.is_in(own[key], value_set=pc.unique(rows[key])).to_numpy())
    if table.distinct:
        own = own.take(~own[key].to_pandas().duplicated().to_numpy())
    ids, (codes, own_codes) = encode(rows[key], own[key])
    own.refuse_repeats(own_codes, lambda row: f"{ids.ids[own_codes[row]]!r} has a row already")
    attributes = align_columns(own_codes, table.label(own), ids, kind)
    return codes, replace(attributes, value_labels=table.value_labels)


def _read_first(column: Any, codes: Codes, n: int) -> AnyArray:
    """Return the first cell of each item in the interactions."""
    items, rows = np.unique(codes, return_index=True)
    return scatter(items.astype(np.int32), _to_array(column.take(pa.array(rows))), n)


def _read_joined(table: _Table, folder: Folder, items: Vocabulary) -> AnyArray:
    """Return the distinct values of each item as ``a|b``, in order of appearance."""
    frame = _read_texts(table, folder, ["item", "value"])
    if table.names:
        names = _read_texts(table.names, folder, ["value", "name"]).drop_duplicates("value")
        frame["value"] = frame["value"].map(names.set_index("value")["name"])
    frame = frame.dropna()
    frame["code"] = items.find(frame["item"].to_numpy(dtype=object))
    texts = frame["value"].str.replace(SEPARATOR, "/", regex=False).str.strip()
    frame = frame.assign(value=texts)[(frame["code"] >= 0) & (texts != "")]
    distinct = frame[["code", "value"]].drop_duplicates()
    joined: pd.Series[Any] = distinct.groupby("code", sort=True)["value"].agg(SEPARATOR.join)
    return scatter(joined.index.to_numpy(np.int32), joined.to_numpy(object), len(items))


def _read_texts(table: _Table, folder: Folder, names: list[str]) -> pd.DataFrame:
    """Return the columns of a table as text, with other names."""
    columns = [column.cast(pa.string()) for column in table.read(folder).cells.columns]
    frame: pd.DataFrame = pa.table(columns, names=names).to_pandas()
    return frame


def _read_times(rows: Any, name: str) -> AnyArray | None:
    """Return the times of the interactions; None if one has none, or all are 0."""
    if "timestamp" not in rows.column_names:
        return None
    times = rows["timestamp"].to_numpy()
    if n_missing := int(np.count_nonzero(~np.isfinite(times))):
        warn(f"{name}: {n_missing:,} row(s) have no time, so the dataset has no times")
        return None
    seconds = np.asarray(times).astype(np.int64)
    if len(seconds) and not np.any(seconds):
        warn(f"{name}: every timestamp is 0, so the dataset has no times")
        return None
    return seconds


_DOCSTRING = """{title}

{about}

Args:
{arguments}

Raises:
    MissingFile: A file is missing; ``recbias data fetch {name}`` downloads it or says where it is.
    MalformedLine: A line does not have the published layout.

Source:
    {source}
"""


def _write_docstring(entry: Mapping[str, Any]) -> str:
    arguments = {
        **{name: setting["about"] for name, setting in entry.get("settings", {}).items()},
        **{key.removeprefix("about_"): text for key, text in entry.items() if "about_" in key},
        "bad_lines": "``error`` stops at a malformed line, ``skip`` skips and counts it.",
    }
    lines = [f"    {name}: {' '.join(text.split())}" for name, text in arguments.items()]
    text = "\n".join(lines).replace("{name}", entry["name"])
    about = entry.get("about", "").strip()
    return _DOCSTRING.format(**{**entry, "arguments": text, "about": about})


def _list_settings(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, type and default of each setting of a declaration."""
    choices = {name: [*setting["choices"]] for name, setting in entry.get("settings", {}).items()}
    if "forms" in entry:
        choices["form"] = [*entry["forms"]]
    for name, values in choices.items():
        yield name, Literal[tuple(values)], field(default=values[0])
    if sides := entry.get("sides"):
        choice: Any = Literal[tuple(sides)]
        yield "side", tuple[choice, ...], field(default=())


def __getattr__(name: str) -> Any:
    """Return the class of a declared dataset by its name."""
    if not (FOLDER / f"{name}.yaml").is_file():
        raise AttributeError(name)
    entry = read_declaration(name)
    namespace = {"declaration": entry, "__module__": __name__, "__doc__": _write_docstring(entry)}
    cls = make_dataclass(
        name,
        _list_settings(entry),
        bases=(Declared,),
        namespace=namespace,
        frozen=True,
        kw_only=True,
    )
    globals()[name] = cls
    return cls
