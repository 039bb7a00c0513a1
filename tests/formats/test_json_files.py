from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine
from recbias.formats import delimited
from recbias.formats.delimited import to_texts
from recbias.formats.json_files import (
    Fields,
    parse_json,
    read_json_lines,
    read_objects,
)

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


def test_a_number_may_stand_for_its_text(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"id": 17, "more": {"price": 2}}\n')
    assert read_json_lines(path, FIELDS).table.to_pylist() == [
        {"id": "17", "stars": None, "more": {"price": "2"}, "shelves": None}
    ]


def test_rows_of_each_block_can_be_filtered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_SIZE", 64)
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
    path.write_text('{"day": "1971"}\n{"day": "soon"}\n')
    with pytest.raises(MalformedLine, match="day is not a time") as caught:
        read_json_lines(path, fields)
    assert caught.value.where == f"{path}:2"


def test_an_empty_text_is_none() -> None:
    assert to_texts(pa.chunked_array([["a", "", None]])).tolist() == ["a", None, None]


@pytest.mark.parametrize("line", ["null", "true", "1", "[]", '"a"', "{} null", "null {}"])
def test_a_line_that_is_no_object_does_not_reach_arrow(tmp_path: Path, line: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(f'{{"id": "x"}}\n{line}\n{{"id": "y"}}\n')
    with collect_warnings():
        rows = read_json_lines(path, FIELDS, bad_lines="skip")
    assert (rows.table["id"].to_pylist(), rows.bad_lines) == (["x", "y"], 1)


def test_repeated_keys_and_surrogate_pairs_are_kept() -> None:
    assert parse_json('{"a": "\\ud83d\\ude00", "a": [1]}', Path("a.json"), pairs=tuple) == (
        ("a", "😀"),
        ("a", [1]),
    )


def test_an_object_repeats_no_key(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"q": {"i": 1}, "r": [2]}', encoding="utf-8")
    assert read_objects(path, "{query: ...}") == {"q": {"i": 1}, "r": [2]}
    path.write_text('{"q": {"i": 1, "i": 2}}', encoding="utf-8")
    with pytest.raises(MalformedLine, match="'i' occurs twice in one object"):
        read_objects(path, "{query: ...}")


def test_dictionaries_of_python_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{u'id': u'a', 'stars': 3, 'x': True}\n{'id': 'b\\'s'}\n", encoding="utf-8")
    fields = replace(FIELDS, is_python=True)
    rows = read_json_lines(path, fields).table
    assert rows["id"].to_pylist() == ["a", "b's"]
    assert rows["stars"].to_pylist() == [3.0, None]
    path.write_text("{'id': 'a'}\n{'id': open('x')}\n", encoding="utf-8")
    with pytest.raises(MalformedLine, match="is not JSON") as caught:
        read_json_lines(path, fields)
    assert caught.value.where == f"{path}:2"
