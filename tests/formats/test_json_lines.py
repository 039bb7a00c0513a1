from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine
from recbias.core.stage_context import collect_warnings
from recbias.formats.delimited import file_blocks
from recbias.formats.json_files import Fields, parse_lines, read_json_lines, to_texts, to_times

FIELDS = Fields(
    types={
        "id": pa.string(),
        "stars": pa.float64(),
        "more": pa.struct([("price", pa.string())]),
        "shelves": pa.list_(pa.struct([("name", pa.string())])),
    },
    needed=("id",),
)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
record = st.fixed_dictionaries(
    {"id": text.filter(bool)},
    optional={
        "stars": st.none() | st.integers(-5, 5) | st.floats(-5, 5),
        "more": st.none() | st.fixed_dictionaries({}, optional={"price": st.none() | text}),
        "shelves": st.none() | st.lists(st.fixed_dictionaries({"name": text}), max_size=3),
        "other": st.integers() | text | st.lists(text, max_size=2),
    },
)


def complete(record: dict[str, Any]) -> dict[str, Any]:
    more = record.get("more")
    return {
        "id": record["id"],
        "stars": record.get("stars"),
        "more": None if more is None else {"price": more.get("price")},
        "shelves": record.get("shelves"),
    }


@given(records=st.lists(record, max_size=12), ascii_only=st.booleans(), blank=st.booleans())
def test_both_parsers_return_the_written_records(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, Any]],
    ascii_only: bool,
    blank: bool,
) -> None:
    # a block with a blank line is read line by line
    lines = [json.dumps(record, ensure_ascii=ascii_only) for record in records] + [""] * blank
    path = tmp_path_factory.mktemp("json") / "file.json"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    rows = read_json_lines(path, FIELDS)
    assert rows.table.to_pylist() == [complete(record) for record in records]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "is not JSON"),
        ('{"id": "x"', "is not JSON"),
        ('{"id": "x"} {"id": "y"}', "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"stars": 3}', "id is missing"),
        ('{"id": ""}', "id is missing"),
        ('{"id": null}', "id is missing"),
        ('{"id": ["x"]}', "id is not a string"),
        ('{"id": "x", "stars": "3"}', "stars is not a double: '3'"),
        ('{"id": "x", "stars": true}', "stars is not a double"),
        ('{"id": "x", "stars": NaN}', "stars is not a finite number"),
        ('{"id": "x", "stars": 1e300}', "stars is not a finite number"),
        ('{"id": "x", "more": "y"}', "more is not a struct"),
        ('{"id": "x", "shelves": {}}', "shelves is not a list"),
        ('{"id": "\\ud83d"}', "is not JSON"),
        ('{"id": "x", "other": ' + "[" * 20_000 + "}", "nested too deeply|is not JSON"),
    ],
)
def test_a_malformed_line_is_reported_or_skipped(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "file.json.gz"
    lines = ['{"id": "a", "stars": 1}', "", line, '{"id": "b"}']
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(MalformedLine, match=problem) as caught:
        read_json_lines(path, FIELDS)
    assert caught.value.where == f"{path}:3"
    with collect_warnings() as messages:
        rows = read_json_lines(path, FIELDS, bad_lines="skip")
    assert rows.table["id"].to_pylist() == ["a", "b"]
    assert rows.bad_lines == 1
    assert messages == ["file.json.gz: 1 malformed line(s) skipped"]


def test_text_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b'{"id": "a"}\n{"id": "\xff"}\n')
    with pytest.raises(MalformedLine, match="is not utf-8") as caught:
        read_json_lines(path, FIELDS)
    assert caught.value.where == f"{path}:2"


def test_a_number_may_stand_for_its_text(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"id": 17, "more": {"price": 2}}\n')
    assert read_json_lines(path, FIELDS).table.to_pylist() == [
        {"id": "17", "stars": None, "more": {"price": "2"}, "shelves": None}
    ]


def test_rows_of_each_block_can_be_filtered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_blocks, "READ_SIZE", 64)
    path = tmp_path / "file.json"
    path.write_text("".join(f'{{"id": "{i}", "stars": {i % 5}}}\n' for i in range(50)))
    rows = read_json_lines(path, FIELDS, keep=lambda table: table.filter(pc.field("stars") > 3))
    assert rows.table["id"].to_pylist() == [str(i) for i in range(4, 50, 5)]


def test_an_empty_file_has_all_columns(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.touch()
    assert read_json_lines(path, FIELDS).table.column_names == list(FIELDS.types)


def test_times_are_converted_and_validated(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    fields = Fields(
        types={"day": pa.string()},
        times={"day": lambda days: pc.strptime(days, "%Y", "s", error_is_null=True).cast("int64")},
    )
    path.write_text('{"day": "1971"}\n{"day": ""}\n{}\n')
    days = read_json_lines(path, fields).table["day"]
    assert days.to_pylist() == [365 * 86_400, None, None]
    with collect_warnings() as messages:
        assert to_times(days, "day") is None
    assert messages == ["day: 2 row(s) have no time, so the dataset has no times"]
    path.write_text('{"day": "1971"}\n{"day": "soon"}\n')
    with pytest.raises(MalformedLine, match="day is not a time") as caught:
        read_json_lines(path, fields)
    assert caught.value.where == f"{path}:2"


def test_an_empty_text_is_none() -> None:
    assert to_texts(pa.chunked_array([["a", "", None]])).tolist() == ["a", None, None]


SCHEMA = pa.schema([("id", pa.string()), ("stars", pa.float64())])


@pytest.mark.parametrize("blank", ["", "\n"])
def test_arrow_and_the_line_by_line_parser_return_the_same_rows(blank: str) -> None:
    # a blank line makes the block go line by line
    lines = parse_lines(f'{{"id": "a", "other": 1}}\n{blank}{{"stars": 2}}\n'.encode(), SCHEMA)
    assert lines.table.to_pylist() == [{"id": "a", "stars": None}, {"id": None, "stars": 2.0}]
    assert list(lines.numbers) == [0, 1 + len(blank)]
    assert lines.problems == {}


def test_the_problem_of_each_malformed_line_is_returned_by_its_number() -> None:
    lines = parse_lines(b'{"id": 7}\n[]\n{"stars": "5"}\n{"id": \n\xff\n', SCHEMA)
    assert lines.table["id"].to_pylist() == ["7"]
    assert list(lines.numbers) == [0]
    assert lines.problems == {
        1: "is not a JSON object",
        2: "stars is not a double: '5'",
        3: "is not JSON: Expecting value: line 1 column 8 (char 7)",
        4: "is not utf-8",
    }


@pytest.mark.parametrize("line", [b"null", b"true", b"1", b"[]", b'"a"', b"{} null", b"null {}"])
def test_a_line_that_is_no_object_does_not_reach_arrow(line: bytes) -> None:
    schema = pa.schema([("a", pa.string())])
    parsed = parse_lines(b'{"a": "x"}\n' + line + b'\n{"a": "y"}\n', schema)
    assert parsed.table.to_pydict() == {"a": ["x", "y"]}
    assert list(parsed.problems) == [1]
