from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from recbias.core.errors import MalformedLine, MissingFile
from recbias.formats import text_files
from recbias.formats.text_files import (
    any_length,
    opened_text,
    parse_json,
    read_cells,
    read_text,
    refuse_bytes,
    split_line,
)

PATH = Path("a.json")


def test_text_is_unpacked_and_its_mark_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.TXT.GZ"
    path.write_bytes(gzip.compress("\ufeffä\r\nb".encode()))
    assert read_text(path) == "ä\r\nb".encode()
    with opened_text(path) as file:
        assert list(file) == ["ä\r\n", "b"]


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(MalformedLine, match="UTF-8") as caught:
        read_text(path)
    assert caught.value.where == f"{path}:3"
    with pytest.raises(MalformedLine, match="UTF-8") as caught, opened_text(path) as file:
        list(file)
    assert caught.value.where == f"{path}:3"


def test_characters_may_stand_across_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PIECE", 3)
    data = "aé\n€😀b\n".encode()
    refuse_bytes(data, PATH)
    for end in (2, 6, 9, 10):
        with pytest.raises(MalformedLine) as caught:
            refuse_bytes(data[:end], PATH)
        assert caught.value.where == f"{PATH}:{data.count(10, 0, end) + 1}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_text(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ('{"a":\n1,}', 2, "not JSON"),
        ("\n" + "[" * 5000, 2, "too deeply"),
        ('["[[",\n' + "9" * 5000 + "]", 2, "more than 4,300 digits"),
        ('["\\\\ud800",\n"\\ud800"]', 2, "half a character"),
    ],
)
def test_json_that_cannot_be_held_is_refused(text: str, line: int, found: str) -> None:
    with pytest.raises(MalformedLine, match=found) as caught:
        parse_json(text, PATH, line=7)
    assert caught.value.where == f"{PATH}:{line + 6}"


def test_json_is_read_as_it_is() -> None:
    assert parse_json('{"a": "\\ud83d\\ude00", "a": [1]}', PATH, pairs=tuple) == (
        ("a", "😀"),
        ("a", [1]),
    )


def test_the_limit_of_cells_is_put_back() -> None:
    before = csv.field_size_limit()
    with any_length():
        assert csv.field_size_limit() > before
    assert csv.field_size_limit() == before
    assert split_line("a," + "b" * 200_000, ",")[1] == "b" * 200_000
    assert split_line("", ",") == []


def test_cells_are_text_of_any_length() -> None:
    data = b"a,b\n007," + b"x" * 3_000_000 + b"\n"
    table = read_cells(data, names=None, texts=["b", "a"], only=True, delimiter=",")
    assert table.column_names == ["b", "a"]
    assert table["a"].to_pylist() == ["007"]
    with pytest.raises(pa.ArrowInvalid):
        read_cells(b"1,2\n3\n", names=["a", "b"], texts=["a"], delimiter=",")
