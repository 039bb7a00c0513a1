"""Files of one JSON object per line, ``.json`` or ``.json.gz``, read in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from recbias.core.arrays import BoolArray, Codes, Ids
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.formats.delimited.file_blocks import Block, read_blocks
from recbias.formats.delimited.layout import SKIP_HINT, BadLines
from recbias.formats.delimited.reader import Rows, collect_rows
from recbias.formats.json_line_parser import parse_lines
from recbias.formats.text_files import BOM


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields to read.

    Args:
        types: The Arrow type of each field; a field that is missing on a line is null.
        needed: Fields that must be on every line, neither null nor empty.
        times: Converts the text of a field to seconds since 1970, null if it is not a time.
    """

    types: Mapping[str, Any]
    needed: tuple[str, ...] = ()
    times: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def schema(self) -> Any:
        """The ``pyarrow.Schema`` of the fields in the file."""
        return pa.schema(list(self.types.items()))


def read_json_lines(
    path: Path,
    fields: Fields,
    *,
    bad_lines: BadLines = "error",
    keep: Callable[[Any], Any] | None = None,
) -> Rows:
    """Return the fields of every line.

    Args:
        path: The file.
        fields: The fields.
        bad_lines: What to do with a malformed line.
        keep: Returns the rows to keep of the table of a block; all by default.

    Raises:
        MalformedLine: A line is not a JSON object, or a field is missing or of another type.
        MissingFile: The file does not exist or cannot be read.
    """
    tables = (_read_block(block, fields, bad_lines) for block in read_blocks(path))
    empty = _convert_times(fields.schema.empty_table(), fields)
    return collect_rows(path, tables, empty, keep)


def to_times(column: Any, name: str) -> npt.NDArray[np.int64] | None:
    """Return a column of times; None, with a warning, if a row has no time."""
    if column.null_count:
        warn(f"{name}: {column.null_count:,} row(s) have no time, so the dataset has no times")
        return None
    return np.asarray(column.to_numpy())


def to_texts(column: Any) -> Ids:
    """Return a column of text, None for null and for an empty text."""
    texts = np.array(column.to_numpy(zero_copy_only=False), dtype=object)
    texts[texts == ""] = None
    return texts


def validate_unique_lines(codes: Codes, ids: Vocabulary, path: Path) -> None:
    """Raise MalformedLine if an identifier, by its code on each line, is on two lines."""
    repeated = np.flatnonzero(np.bincount(codes, minlength=len(ids)) > 1)
    if repeated.size:
        message = f"{str(ids.ids[repeated[0]])!r} is on two lines"
        raise MalformedLine(message, where=str(path), remedy="keep one line for each identifier")


def _read_block(block: Block, fields: Fields, bad_lines: BadLines) -> tuple[Any, int]:
    """Return the table of a block, and the number of lines skipped."""
    data = block.data.removeprefix(BOM)
    lines = parse_lines(data, fields.schema)
    table = _convert_times(lines.table, fields)
    row_problems: dict[int, str] = {}
    for name, wrong, reason in _check_fields(lines.table, table, fields):
        for row in np.flatnonzero(wrong):
            row_problems.setdefault(int(row), f"{name} {reason}")
    numbered = {int(lines.numbers[row]): problem for row, problem in row_problems.items()}
    problems = lines.problems | numbered
    if problems and bad_lines == "error":
        number = min(problems)
        location = f"{block.path}:{block.find_first_line() + number}"
        raise MalformedLine(problems[number], where=location, remedy=SKIP_HINT)
    if row_problems:
        table = table.take(np.delete(np.arange(table.num_rows), sorted(row_problems)))
    return table, len(problems)


def _convert_times(table: Any, fields: Fields) -> Any:
    for name, parse in fields.times.items():
        position = table.schema.get_field_index(name)
        table = table.set_column(position, name, parse(table[name]))
    return table


def _check_fields(raw: Any, table: Any, fields: Fields) -> Iterator[tuple[str, Any, str]]:
    """Yield a field, a mask of the rows in which it is invalid, and the reason."""
    for name in fields.needed:
        yield name, ~_is_filled(raw[name]), "is missing"
    for name in fields.times:
        yield name, table[name].is_null().to_numpy() & _is_filled(raw[name]), "is not a time"
    for name in raw.column_names:
        if pa.types.is_floating(raw[name].type):
            numbers = pc.fill_null(raw[name], 0.0).to_numpy()
            is_finite = np.abs(numbers) <= np.finfo(np.float32).max
            yield name, ~is_finite, "is not a finite number"


def _is_filled(column: Any) -> BoolArray:
    if pa.types.is_string(column.type):
        return np.asarray(pc.fill_null(pc.not_equal(column, ""), fill_value=False).to_numpy())
    return np.asarray(column.is_valid().to_numpy())
