"""Files of one JSON object a line, ``.json`` or ``.json.gz``, to Arrow tables in bounded memory.

Every block of lines goes through Arrow's parser; only a block that it refuses is read line by
line, which finds the line that is at fault. Fields that are not asked for are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import BoolArray, Codes, Ids
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine
from recbias.core.stage_context import warn
from recbias.formats.delimited.file_blocks import Block, blocks
from recbias.formats.delimited.layout import SKIPPING, BadLines
from recbias.formats.delimited.reader import Rows
from recbias.formats.text_files import BOM

ARROW_BLOCK = 4 * 2**20
"""Bytes that one thread parses at a time; a longer line is read by itself."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields to read.

    Args:
        types: The Arrow type of each field; a field that a line lacks is null.
        needed: Fields that every line must have, not null and not empty.
        times: How the text of a field becomes seconds since 1970, null where it is no time.
    """

    types: Mapping[str, Any]
    needed: tuple[str, ...] = ()
    times: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def schema(self) -> Any:
        """The Arrow schema of the fields as they stand in the file."""
        import pyarrow as pa

        return pa.schema(list(self.types.items()))


@dataclass(frozen=True)
class Lines:
    """Some lines that were taken apart.

    Args:
        table: The lines that are JSON objects of the right types.
        numbers: The line number of each of its rows, less that of the block's first line.
        faults: What is wrong with the others, by the same number.
    """

    table: Any
    numbers: Any
    faults: dict[int, str]


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
        bad_lines: What a malformed line does.
        keep: Is given the table of each block, and returns what to keep of it.

    Raises:
        MalformedLine: A line is no JSON object, or a field has another type or is missing.
        MissingFile: The file is not there or cannot be read.
    """
    import pyarrow as pa

    tables, bad = [], 0
    for block in blocks(path):
        table, left_out = _read_block(block, fields, skipping=bad_lines == "skip")
        tables.append(keep(table) if keep else table)
        bad += left_out
    if bad:
        warn(f"{path.name}: {bad:,} malformed line(s) left out")
    empty = _in_seconds(fields.schema.empty_table(), fields)
    return Rows(pa.concat_tables(tables or [keep(empty) if keep else empty]), bad)


def times_of(column: Any, name: str) -> npt.NDArray[np.int64] | None:
    """Return a column of times; None, with a warning, where a row has none."""
    if column.null_count:
        warn(f"{name}: {column.null_count:,} row(s) have no time, so the dataset has no times")
        return None
    return np.asarray(column.to_numpy())


def texts_of(column: Any) -> Ids:
    """Return a column of text as ``str`` or None; an empty text is None."""
    texts = np.array(column.to_numpy(zero_copy_only=False), dtype=object)
    texts[texts == ""] = None
    return texts


def refuse_two_lines(codes: Codes, ids: Vocabulary, path: Path) -> None:
    """Refuse a file in which an identifier stands on two lines.

    Args:
        codes: The identifier of each line.
        ids: The identifiers.
        path: The file.

    Raises:
        MalformedLine: One does.
    """
    twice = np.flatnonzero(np.bincount(codes, minlength=len(ids)) > 1)
    if twice.size:
        found = f"{str(ids.ids[twice[0]])!r} stands on two lines"
        raise MalformedLine(found, where=str(path), remedy="keep one line for each")


def _read_block(block: Block, fields: Fields, *, skipping: bool) -> tuple[Any, int]:
    data = block.data.removeprefix(BOM)
    lines = _fast(data, fields) or _exact(data, fields)
    table = _in_seconds(lines.table, fields)
    wrong, reasons = _wrong(lines.table, table, fields)
    faults = lines.faults | {int(lines.numbers[row]): reasons[row] for row in wrong}
    if faults and not skipping:
        first = min(faults)
        where = f"{block.path}:{block.first_line() + first}"
        raise MalformedLine(faults[first], where=where, remedy=SKIPPING)
    if wrong:
        table = table.take(np.delete(np.arange(table.num_rows), wrong))
    return table, len(faults)


def _fast(data: bytes, fields: Fields) -> Lines | None:
    """Return the lines as Arrow reads them; None where it refuses, or has not one row a line."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    options = arrow_json.ParseOptions(
        explicit_schema=fields.schema, unexpected_field_behavior="ignore"
    )
    try:
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(block_size=ARROW_BLOCK),
            parse_options=options,
        )
        table.validate(full=True)
    except pa.ArrowInvalid:
        return None
    n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
    blank = data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data
    return None if blank or table.num_rows != n_lines else Lines(table, range(n_lines), {})


def _exact(data: bytes, fields: Fields) -> Lines:
    import pyarrow as pa

    records, numbers, faults = [], [], {}
    for number, text in enumerate(data.split(b"\n")):
        if not text.strip():
            continue
        record, fault = _record(text, fields.schema)
        if fault:
            faults[number] = fault
        else:
            records.append(record)
            numbers.append(number)
    return Lines(pa.Table.from_pylist(records, schema=fields.schema), numbers, faults)


def _record(text: bytes, schema: Any) -> tuple[dict[str, Any], str]:
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            return {each.name: _fitted(found.get(each.name), each) for each in schema}, ""
    except UnicodeDecodeError:
        return {}, "is not utf-8"
    except RecursionError:
        return {}, "is nested too deeply"
    except (ValueError, OverflowError) as error:
        return {}, f"is not JSON: {str(error).partition(' for integer')[0]}"
    except TypeError as error:
        return {}, str(error)
    return {}, "is not a JSON object"


def _fitted(value: Any, field_: Any) -> Any:
    """Return a value of JSON as its Arrow type takes it; a number may stand for its text."""
    import pyarrow as pa

    kind = field_.type
    if value is None:
        return None
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {each.name: _fitted(value.get(each.name), each) for each in kind}
    if pa.types.is_list(kind) and isinstance(value, list):
        return [_fitted(each, kind.value_field) for each in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if pa.types.is_string(kind) and isinstance(value, str):
        value.encode()  # half of a surrogate pair is a UnicodeEncodeError, a ValueError
        return value
    if pa.types.is_string(kind) and is_number:
        return str(value)
    if pa.types.is_floating(kind) and is_number:
        return float(value)
    message = f"{field_.name} is not a {kind}: {str(value)[:40]!r}"
    raise TypeError(message)


def _in_seconds(table: Any, fields: Fields) -> Any:
    for name, parse in fields.times.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, parse(table[name]))
    return table


def _wrong(raw: Any, table: Any, fields: Fields) -> tuple[list[int], Mapping[int, str]]:
    """Return the rows that lack a needed field or hold no number or time, and why, by row."""
    reasons: dict[int, str] = {}
    for name, rows, reason in _faults(raw, table, fields):
        for row in np.flatnonzero(rows):
            reasons.setdefault(int(row), f"{name} {reason}")
    return sorted(reasons), reasons


def _faults(raw: Any, table: Any, fields: Fields) -> Iterator[tuple[str, Any, str]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in fields.needed:
        yield name, (~_given(raw[name])), "is missing"
    for name in fields.times:
        yield name, table[name].is_null().to_numpy() & _given(raw[name]), "is not a time"
    for name in raw.column_names:
        if pa.types.is_floating(raw[name].type):
            numbers = pc.fill_null(raw[name], 0.0).to_numpy()
            bad = ~(np.abs(numbers) <= np.finfo(np.float32).max)
            yield name, bad, "is not a finite number"


def _given(column: Any) -> BoolArray:
    """Return which cells are neither null nor an empty text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(column.type):
        return np.asarray(pc.fill_null(pc.not_equal(column, ""), fill_value=False).to_numpy())
    return np.asarray(column.is_valid().to_numpy())
