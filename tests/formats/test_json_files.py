from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine
from recbias.formats import delimited
from recbias.formats.json_files import parse_json, read_json_lines

FIELDS = pa.schema(
    {
        "id": pa.string(),
        "stars": pa.float64(),
        "more": pa.struct([("price", pa.string())]),
        "shelves": pa.list_(pa.struct([("name", pa.string())])),
    }
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
    assert rows.cells.to_pylist() == [complete(record) for record in records]


def test_a_number_may_stand_for_its_text(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"id": 17, "more": {"price": 2}}\n')
    assert read_json_lines(path, FIELDS).cells.to_pylist() == [
        {"id": "17", "stars": None, "more": {"price": "2"}, "shelves": None}
    ]


def test_rows_of_each_block_can_be_filtered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK_SIZE", 64)
    path = tmp_path / "file.json"
    path.write_text("".join(f'{{"id": "{i}", "stars": {i % 5}}}\n' for i in range(50)))
    rows = read_json_lines(path, FIELDS, keep=lambda table: table.filter(pc.field("stars") > 3))
    assert rows.cells["id"].to_pylist() == [str(i) for i in range(4, 50, 5)]


def test_repeated_keys_and_surrogate_pairs_are_kept() -> None:
    assert parse_json('{"a": "\\ud83d\\ude00", "a": [1]}', Path("a.json"), pairs=tuple) == (
        ("a", "😀"),
        ("a", [1]),
    )


def test_dictionaries_of_python_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{u'id': u'a', 'stars': 3, 'x': True}\n{'id': 'b\\'s'}\n", encoding="utf-8")
    rows = read_json_lines(path, FIELDS, is_python=True).cells
    assert rows["id"].to_pylist() == ["a", "b's"]
    assert rows["stars"].to_pylist() == [3.0, None]
    path.write_text("{'id': 'a'}\n{'id': open('x')}\n", encoding="utf-8")
    with pytest.raises(MalformedLine, match="is not JSON") as caught:
        read_json_lines(path, FIELDS, is_python=True)
    assert caught.value.where == f"{path}:2"
