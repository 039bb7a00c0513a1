"""How the columns of a user's own table are read: names, types, missing cells, spelling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import SEPARATOR
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.core.inherited_sections import InheritsSections
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.formats.tables import TableFile, infer_column
from recbias.formats.text_files import shorten

ColumnType: TypeAlias = Literal["number", "yes_no", "text"]
"""The type that a column is read as."""

ANSWERS = {
    **dict.fromkeys(("yes", "y", "true", "t", "1"), 1.0),
    **dict.fromkeys(("no", "n", "false", "f", "0"), 0.0),
}
"""The number of each answer in a column of the type ``yes_no``, without regard to case."""

_SYMBOLS = r"[\s$€£¥₹]|(?<=\d),(?=\d{3}(?:\D|$))"
"""Matches what ``number`` removes: spaces, signs of currencies, commas between thousands."""

MAX_SHOWN = 5
"""The number of spellings that a warning names."""

MAX_LABELS = 20
"""A column with more different values is a label if its values occur twice on average."""


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
    """The settings of tables.

    Args:
        columns: New names of columns, by their names in the files: ``{customer: user_id}``.
        types: The types of columns, by their new names: ``number`` also reads ``$5`` and
            ``1,000``, ``yes_no`` reads yes, no, true, false, y, n, t, f, 1 and 0 as 1 and 0,
            ``text`` keeps numbers as text. Columns that are not named are numeric if every cell
            is a number.
        missing: Values that mean that a cell has no value, as in ``[N/A, unknown]``, without
            regard to case and white space at the ends. Empty cells are always missing.
        clean: How text is changed, as in ``{trim: true, case: lower}``. Values that differ by
            white space or case only are warned about.
    """

    columns: dict[str, str] = field(default_factory=dict, hash=False)
    types: dict[str, ColumnType] = field(default_factory=dict, hash=False)
    missing: tuple[str | int | float, ...] = ()
    clean: Clean = Clean()

    def refuse_unknown_columns(self, names: Iterable[str]) -> None:
        """Raise UnknownColumn if a setting names a column that no table has.

        Args:
            names: The columns of the tables, as in the files.
        """
        names = list(names)
        renamed = [self.columns.get(name, name) for name in names]
        for setting, named, known in (
            ("columns", self.columns, names),
            ("types", self.types, renamed),
        ):
            for name in named:
                if name not in known:
                    message = f"no table has a column {name!r}"
                    raise UnknownColumn(message, where=setting, remedy=suggest(name, known))

    def read_columns(self, table: TableFile) -> dict[str, AnyArray]:
        """Return the columns of a table without its identifiers, the first column.

        Raises:
            MalformedLine: A cell does not have the type of its column.
        """
        _, *names = table.rows.table.column_names
        return {name: self._read_column(table, name) for name in names}

    def _read_column(self, table: TableFile, name: str) -> AnyArray:
        column, kind = table.rows.table[name], self.types.get(name)
        if pa.types.is_floating(column.type):
            return self._read_numbers(np.asarray(column.to_numpy()), kind)
        if kind is None and not self.missing and self.clean == Clean():
            return self._read_unchanged(table, name)
        codes, cells = pd.factorize(np.asarray(column.to_numpy(), dtype=object))
        counts = np.bincount(codes, minlength=cells.size)
        cleaned = self._clean(pd.Series(cells, dtype=object), counts)
        if kind in {"number", "yes_no"}:
            numbers, is_wrong = _parse_numbers(cleaned, kind)
            if is_wrong.any():
                raise _make_type_error(table, name, kind, is_wrong[codes])
            return numbers[codes]
        values = cleaned[codes] if kind == "text" else infer_column(_to_arrow(cleaned, codes))
        if values.dtype == object:
            values[values == ""] = None
            _warn_of_spellings(f"{table.path.name}: {name}", cleaned, counts)
        return values

    def _read_unchanged(self, table: TableFile, name: str) -> AnyArray:
        values = infer_column(table.rows.table[name])
        if values.dtype == object:
            counts = pd.Series(values, dtype=object).value_counts()
            cells, n = counts.index.to_numpy(dtype=object), counts.to_numpy()
            _warn_of_spellings(f"{table.path.name}: {name}", cells, n)
        return values

    def _read_numbers(self, numbers: FloatArray, kind: str | None) -> AnyArray:
        """Return a column of numbers of a Parquet file without the missing ones."""
        missing = [float(value) for value in self.missing if isinstance(value, int | float)]
        numbers = np.where(np.isin(numbers, missing), np.nan, numbers)
        if kind != "text":
            return numbers
        shown = pd.Series(numbers).map(lambda x: np.format_float_positional(x, trim="-"), "ignore")
        return shown.astype(object).where(shown.notna(), None).to_numpy(dtype=object)

    def _clean(self, cells: pd.Series[Any], counts: AnyArray) -> AnyArray:
        """Return the changed text of each different cell, "" where it is missing."""
        values = _split_cells(cells)
        missing = {str(value).strip().casefold() for value in self.missing}
        values = values[~values.str.strip().str.casefold().isin(missing)]
        if self.clean.trim:
            values = values.str.strip()
        values = _change_case(values, self.clean.case, counts)
        joined = values.groupby(level=0, sort=False).agg(SEPARATOR.join)
        return joined.reindex(range(cells.size), fill_value="").to_numpy(dtype=object)


def _split_cells(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of each cell, indexed by the position of the cell."""
    values: pd.Series[Any] = cells.str.split(SEPARATOR, regex=False).explode().astype(object)
    return values


def _change_case(values: pd.Series[Any], case: str, counts: AnyArray) -> pd.Series[Any]:
    if case in {"lower", "upper"}:
        changed: pd.Series[Any] = getattr(values.str, case)()
        return changed
    if case == "keep" or values.empty:
        return values
    frame = _count_spellings(values, counts)
    best = frame.sort_values(["n", "value"], ascending=[False, True]).drop_duplicates("folded")
    spelling = best.set_index("folded")["value"]
    return values.str.casefold().map(spelling)


def _count_spellings(values: pd.Series[Any], counts: AnyArray) -> pd.DataFrame:
    """Return how often each value occurs, and what it is without regard to case."""
    occurrences = pd.Series(counts[values.index.to_numpy()], index=values.to_numpy())
    totals = occurrences.groupby(level=0).sum()
    spellings = totals.index.to_series().astype(str)
    return pd.DataFrame(
        {"value": spellings, "n": totals, "folded": spellings.str.casefold()}
    ).reset_index(drop=True)


def _warn_of_spellings(column: str, cells: AnyArray, counts: AnyArray) -> None:
    """Warn of labels that have white space at their ends or differ only by it or by case."""
    values = _split_cells(pd.Series(cells, dtype=object))
    frame = _count_spellings(values[values.str.strip() != ""], counts)
    frame["key"] = frame["folded"].str.strip()
    n_labels = frame["key"].nunique()
    if n_labels > max(MAX_LABELS, frame["n"].sum() / 2):
        return
    has_space = frame["value"] != frame["value"].str.strip()
    is_repeated = frame["key"].duplicated(keep=False)
    unlike = frame[has_space | is_repeated].sort_values(["key", "value"])
    if unlike.empty:
        return
    differs = frame["value"].str.strip().groupby(frame["key"]).nunique().gt(1).any()
    settings = ["trim: true"] * bool(has_space.any()) + ["case: most_common"] * bool(differs)
    pairs = zip(unlike["value"], unlike["n"], strict=True)
    shown = ", ".join(f"{shorten(value)} ({n:,})" for value, n in [*pairs][: 2 * MAX_SHOWN])
    more = ", ..." if len(unlike) > 2 * MAX_SHOWN else ""
    problem = "values that differ only by case or white space, or have white space at their ends"
    remedy = f"clean: {{{', '.join(settings)}}} changes that"
    warn(f"{column} has {problem}: {shown}{more}; {remedy}")


def _parse_numbers(cells: AnyArray, kind: str) -> tuple[AnyArray, AnyArray]:
    """Return the number of each cell, NaN if it is empty, and which cells are none."""
    texts = pd.Series(cells, dtype=object).str.strip()
    if kind == "yes_no":
        numbers = texts.str.casefold().map(ANSWERS).to_numpy(dtype=np.float64)
    else:
        plain = texts.str.replace(_SYMBOLS, "", regex=True)
        numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(numbers), np.isnan(numbers) & (texts != "").to_numpy()


def _make_type_error(table: TableFile, name: str, kind: str, is_wrong: AnyArray) -> MalformedLine:
    row, expected = int(np.flatnonzero(is_wrong)[0]), kind.replace("_", " or ")
    cell = table.rows.table[name][row].as_py()
    message = f"{name} is {cell!r}, not {expected}: {np.count_nonzero(is_wrong):,} such cell(s)"
    remedy = f"correct the table, or add missing: [{cell!r}]"
    return MalformedLine(message, where=table.where(row), remedy=remedy)


def _to_arrow(cells: AnyArray, codes: AnyArray) -> Any:
    return pa.chunked_array([pa.array(cells[codes], pa.string())])
