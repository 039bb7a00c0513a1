"""How the columns of a user's own table are read: names, types, missing cells, spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.context import warn
from recbias.core.dataset import SEPARATOR, AnyArray, BoolArray, FloatArray
from recbias.core.docstrings import InheritsSections
from recbias.core.errors import Contradiction
from recbias.formats.delimited import Table
from recbias.formats.identifiers import NO_VALUE, to_texts
from recbias.formats.tables import decode_dictionary, list_file_columns, refuse_unknown
from recbias.formats.text_files import shorten

_ColumnType: TypeAlias = Literal["number", "yes_no", "text"]
"""The type that a column is read as."""

_NUMBER = r"^(?:[+-]?(?:0|[1-9]\d*)?(?:\.\d+)?(?:[eE][+-]?\d+)?|[nN]a[nN]|NAN)$"
"""A number as a column of numbers holds it, or an empty cell; ``007`` is text."""

_ANSWERS = {
    **dict.fromkeys(("yes", "y", "true", "t", "1"), 1.0),
    **dict.fromkeys(("no", "n", "false", "f", "0"), 0.0),
}
"""The number of each answer in a column of the type ``yes_no``, without regard to case."""

_SYMBOLS = r"[\s$€£¥₹]|(?<=\d),(?=\d{3}(?:\D|$))"
"""Matches what ``number`` removes: spaces, signs of currencies, commas between thousands."""

_LIST = r"\[\s*['\"].*\]"
"""How pandas writes a list to CSV."""

_LISTS = re.compile(r"(?i)genre|categor|tag|topic|keyword|lang|actor|cast|director|author")
"""Names of columns that often hold several values."""

_MAX_SHOWN = 10
"""The number of spellings that a warning names."""

_MAX_LABELS = 20
"""A column with more different values is a label if its values occur twice on average."""


def infer_column(column: Any) -> AnyArray:
    """Return a column as ``float64`` if every cell is a number or empty, else as text.

    >>> import pyarrow as pa
    >>> infer_column(pa.chunked_array([["1", "", "2.5"]])).tolist()
    [1.0, nan, 2.5]
    >>> infer_column(pa.chunked_array([["007", "", "2"]])).tolist()
    ['007', None, '2']
    """
    if pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    filled = pc.not_equal(column, "")
    if pc.any(filled).as_py() and pc.all(pc.match_substring_regex(column, _NUMBER)).as_py():
        numbers = pc.if_else(filled, column, pa.scalar(None, pa.string())).cast(pa.float64())
        return np.asarray(numbers.to_numpy())
    return to_texts(column)


_OF_LABELS = ("types", "missing", "clean", "separator")
"""The settings that act on the columns of users, items and queries only."""

_IDS = frozenset({"user_id", "item_id", "query_id"})


@dataclass(frozen=True, kw_only=True)
class Clean:
    """How the text of a table is changed.

    Args:
        trim: Whether white space at the ends of values is removed.
        case: ``lower`` or ``upper`` for all text; ``most_common`` writes values that differ by
            case only as the most frequent one of them; ``keep`` changes nothing.
    """

    trim: bool = False
    case: Literal["keep", "lower", "upper", "most_common"] = "keep"


@dataclass(frozen=True, kw_only=True)
class TableSettings(InheritsSections):
    """The settings of tables; all but ``columns`` act on users, items and queries only.

    Args:
        columns: New names of columns, by their names in the files: ``{customer: user_id}``.
        types: The types of columns, by their new names: ``number`` also reads ``$5`` and
            ``1,000``, ``yes_no`` reads yes, no, true, false, y, n, t, f, 1 and 0 as 1 and 0,
            ``text`` keeps numbers as text. Columns that are not named are numeric if every cell
            is a number.
        missing: Values that mean that a cell has no value, as in ``[N/A, unknown, null]``, without
            regard to case and white space at the ends. Empty cells are always missing.
        clean: How text is changed, as in ``{trim: true, case: lower}``. Values that differ by
            white space or case only are warned about.
        separator: The text between several values of a cell, by column: ``{genres: ","}``; white
            space around the values is removed. ``|`` for columns that are not named.
    """

    columns: dict[str, str] = field(default_factory=dict, hash=False)
    types: dict[str, _ColumnType] = field(default_factory=dict, hash=False)
    missing: tuple[str | int | float | None, ...] = ()
    clean: Clean = Clean()
    separator: dict[str, str] = field(default_factory=dict, hash=False)

    def check_settings(self, all_paths: Iterable[Path], labelled: Iterable[Path | None]) -> None:
        """Raise if a setting names no column of all files, or acts on none of the labelled ones.

        Raises:
            UnknownColumn: No file has a column that a setting names.
            Contradiction: A setting has no effect.
        """
        plain = TableSettings()
        given = [name for name in _OF_LABELS if getattr(self, name) != getattr(plain, name)]
        if not (given or self.columns):
            return
        files, of_labels = [
            [name for path in paths if path is not None for name in list_file_columns(path)]
            for paths in (all_paths, labelled)
        ]
        refuse_unknown("columns", self.columns, files)
        idle = [] if of_labels else [(setting, "its tables are") for setting in given]
        acted = {self.columns.get(name, name) for name in of_labels} - _IDS
        for setting, named in (("types", self.types), ("separator", self.separator)):
            refuse_unknown(setting, named, [self.columns.get(name, name) for name in files])
            idle += [(setting, f"{name!r} is") for name in named if name not in acted]
        for setting, what in idle:
            message = f"has no effect: {what} read as written"
            remedy = "leave it out, or correct the file: it acts on columns of users, items and "
            remedy += "queries, not on their identifiers"
            raise Contradiction(message, where=setting, remedy=remedy)

    def read_columns(self, table: Table) -> dict[str, AnyArray]:
        """Return the columns of a table without its identifiers, the first column.

        Raises:
            MalformedLine: A cell does not have the type of its column.
        """
        _, *names = table.columns
        return {name: self._read_column(table, name) for name in names}

    def _read_column(self, table: Table, name: str) -> AnyArray:
        column, kind = table[name], self.types.get(name)
        if pa.types.is_floating(column.type):
            return self._read_numbers(np.asarray(column.to_numpy()), kind)
        separator = self.separator.get(name)
        if separator:
            pattern = rf"\s*{re.escape(separator.strip() or separator)}\s*"
            divided = pc.replace_substring_regex(column, pattern, SEPARATOR)
            if separator != SEPARATOR and divided.equals(column):
                warn(f"{table.path.name}: no cell of {name} has the separator {separator!r}")
            column = divided
        codes, cells = pd.factorize(np.asarray(column.to_numpy(), dtype=object))
        counts = np.bincount(codes, minlength=cells.size)
        is_changed = self.missing or self.clean != Clean()
        cleaned = self._clean(pd.Series(cells, dtype=object), counts) if is_changed else cells
        if kind in {"number", "yes_no"}:
            numbers, is_wrong = _parse_numbers(cleaned, kind)
            expected, n_wrong = kind.replace("_", " or "), np.count_nonzero(is_wrong[codes])
            table.refuse(
                is_wrong[codes],
                lambda row: f"{name} is {cells[codes[row]]!r}, not {expected}: {n_wrong:,} such",
                "correct the table, or name such cells in missing: [...]",
            )
            return numbers[codes]
        values = cleaned[codes]
        if kind != "text":
            values = infer_column(pa.chunked_array([pa.array(values, pa.string())]))
        if values.dtype == object:
            values[values == ""] = None
            _warn_of_labels(table.path.name, name, cleaned, counts, may_be_joined=not separator)
        return values

    def _read_numbers(self, numbers: FloatArray, kind: str | None) -> AnyArray:
        """Return a column of numbers of a Parquet file without the missing ones."""
        missing = [float(value) for value in self.missing if isinstance(value, int | float)]
        numbers = np.where(np.isin(numbers, missing), np.nan, numbers)
        if kind != "text":
            return numbers
        shown = pd.Series(numbers).map(lambda x: np.format_float_positional(x, trim="-"), "ignore")
        return shown.astype(object).where(shown.notna(), None).to_numpy(dtype=object)

    def _find_missing(self, values: pd.Series[Any]) -> pd.Series[Any]:
        texts = ("null" if value is None else str(value) for value in self.missing)
        missing = {text.strip().casefold() for text in texts}
        return values.str.strip().str.casefold().isin(missing)

    def warn_of_unused(self, tables: Iterable[Table | None], rows: Table | None = None) -> None:
        """Warn if no cell of some tables is one of ``missing``, and if one of interactions is."""
        labelled = [table for table in tables if table is not None]
        columns = (table[name] for table in labelled for name in table.columns[1:])
        if self.missing and labelled and not any(map(self._has_missing, columns)):
            names = ", ".join(table.path.name for table in labelled)
            warn(f"no cell of {names} is one of missing: {[*self.missing]}")
        if self.missing and rows is not None:
            for name in rows.columns:
                if name != "timestamp" and self._has_missing(rows[name]):
                    problem = f"{name} has values of missing, which acts on no interactions"
                    warn(f"{rows.path.name}: {problem}: such rows are kept")

    def _has_missing(self, column: Any) -> bool:
        """Return whether a cell of a column is one of ``missing``."""
        if pa.types.is_floating(column.type):
            numbers = [value for value in self.missing if isinstance(value, int | float)]
            return bool(np.isin(column.to_numpy(), numbers).any())
        texts = pd.Series(decode_dictionary(column).unique().to_pylist(), dtype=object)
        return bool(self._find_missing(_split_cells(texts)).any())

    def _clean(self, cells: pd.Series[Any], counts: AnyArray) -> AnyArray:
        """Return the changed text of each different cell, "" where it is missing."""
        values = _split_cells(cells)
        values = values[~self._find_missing(values)]
        if self.clean.trim:
            values = values.str.strip()
        if self.clean.case in {"lower", "upper"}:
            values = getattr(values.str, self.clean.case)()
        elif self.clean.case == "most_common" and len(values):
            spellings = _count_spellings(values, counts)
            best = spellings.sort_values(["n", "value"], ascending=[False, True])
            spelling = best.drop_duplicates("folded").set_index("folded")["value"]
            values = values.str.casefold().map(spelling)
        joined = values.groupby(level=0, sort=False).agg(SEPARATOR.join)
        return joined.reindex(range(cells.size), fill_value="").to_numpy(dtype=object)


def _parse_numbers(cells: AnyArray, kind: str) -> tuple[FloatArray, BoolArray]:
    """Return the number of each cell, NaN if it is empty, and which cells are none."""
    texts = pd.Series(cells, dtype=object).str.strip()
    if kind == "yes_no":
        numbers = texts.str.casefold().map(_ANSWERS).to_numpy(dtype=np.float64)
    else:
        plain = texts.str.replace(_SYMBOLS, "", regex=True)
        numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(numbers), np.isnan(numbers) & (texts != "").to_numpy()


def _split_cells(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of each cell, indexed by the position of the cell."""
    values: pd.Series[Any] = cells.str.split(SEPARATOR, regex=False).explode().astype(object)
    return values


def _count_spellings(values: pd.Series[Any], counts: AnyArray) -> pd.DataFrame:
    """Return how often each value occurs, and what it is without regard to case."""
    occurrences = pd.Series(counts[values.index.to_numpy()], index=values.to_numpy())
    totals = occurrences.groupby(level=0).sum()
    spellings = totals.index.to_series().astype(str)
    return pd.DataFrame(
        {"value": spellings, "n": totals, "folded": spellings.str.casefold()}
    ).reset_index(drop=True)


def _warn_of_labels(
    file: str, name: str, cells: AnyArray, counts: AnyArray, *, may_be_joined: bool
) -> None:
    """Warn of labels that are no value, several values, or one value in several spellings."""
    values, column = _split_cells(pd.Series(cells, dtype=object)), f"{file}: {name}"
    frame = _count_spellings(values[values.str.strip() != ""], counts)
    frame["key"] = frame["folded"].str.strip()
    for value in frame["value"][frame["value"].str.strip().str.fullmatch(NO_VALUE)]:
        warn(f"{column} has the text {value!r} as a value; missing: [{value}] reads it as none")
    lists = frame["value"][frame["value"].str.fullmatch(_LIST)]
    for value in lists[:1]:
        remedy = "write the values as a|b"
        warn(f"{column} has lists as text, each of them one value: {shorten(value)}; {remedy}")
    for mark in ",;" if may_be_joined and lists.empty else "":
        if joined := _find_joined(frame, mark, name):
            remedy = f'separator: {{{name}: "{mark}"}} reads several values from such a cell'
            warn(f"{column} may hold several values in a cell, as in {shorten(joined)}; {remedy}")
    if not _is_label(frame, frame["key"].nunique()):
        return
    has_space = frame["value"] != frame["value"].str.strip()
    is_repeated = frame["key"].duplicated(keep=False)
    unlike = frame[has_space | is_repeated].sort_values(["key", "value"])
    if unlike.empty:
        return
    pairs = zip(unlike["value"], unlike["n"], strict=True)
    shown = [f"{shorten(value)} ({n:,})" for value, n in pairs]
    listed = ", ".join([*shown[:_MAX_SHOWN], *["..."][: len(shown) > _MAX_SHOWN]])
    problem = "values that differ only by case or white space, or have white space at their ends"
    remedy = "clean: {trim: true, case: most_common} changes that"
    warn(f"{column} has {problem}: {listed}; {remedy}")


def _is_label(frame: pd.DataFrame, n_values: int) -> bool:
    return n_values <= max(_MAX_LABELS, frame["n"].sum() / 2)


def _find_joined(frame: pd.DataFrame, mark: str, column: str) -> str:
    """Return a value whose parts between marks are labels; "" if the column has none."""
    values = frame["key"][~frame["key"].str.contains(r"\d")]
    is_joined = values.str.contains(mark, regex=False)
    if not is_joined.any():
        return ""
    parts = values.str.split(mark).explode().str.strip()
    places = (1 + parts.groupby(level=0).cumcount()).where(is_joined[parts.index], 0)
    n_places = places.groupby(parts.to_numpy()).nunique()[parts[places > 0]]
    is_label = _LISTS.search(column) and len(frame) <= min(_MAX_LABELS, frame["n"].sum() / 2)
    least = 0.5 if len(frame) > _MAX_LABELS else 1e-9
    is_joined &= bool(is_label) or (n_places > 1).mean() >= least
    return str(frame["value"][values[is_joined].index].iloc[0]) if is_joined.any() else ""
