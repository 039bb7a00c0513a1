"""Lines of text files that several readers read: each says the same of the same fault."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.delimited.layout import Layout
from recbias.formats.delimited.reader import read_table
from recbias.formats.json_text import parse_json
from recbias.formats.lists.read import read_rows
from recbias.formats.tables import TableColumns, read_file
from recbias.formats.text_files import read_text
from recbias.formats.text_tables import read_text_table
from recbias.formats.yaml import read_file as read_yaml

COLUMNS = TableColumns(needed={"query_id": "id", "item_id": "id"}, others=True)


def read_own(path: Path) -> object:
    return read_file(path, COLUMNS)


READERS = [read_text_table, read_own, read_rows]
HEADER = "query_id,rank,item_id\n"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ('u,1,a\nv,1,"b\nw,1,c\nx,1,d\n', 3),
        ('u,1,"a\n', 2),
        ('u,1,"a\n\nb"\nv,1,"c\nw,1,d', 5),
        ('u,1,a\n"v,1,b\nw,1,c\n', 3),
    ],
)
def test_an_unclosed_quote_is_placed_at_its_line(
    tmp_path: Path, read: Any, rows: str, line: int
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + rows)
    with pytest.raises(MalformedLine, match="a quote is never closed") as caught:
        read(path)
    assert caught.value.where == f"{path}:{line}"
    assert caught.value.remedy


@pytest.mark.parametrize("read", READERS)
def test_a_quote_inside_a_cell_is_no_open_one(tmp_path: Path, read: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f'{HEADER}u,1,a"b\nv,1,c\n')
    read(path)


@pytest.mark.parametrize("read", [*READERS, read_text])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("encode", "fault"),
    [
        (lambda text: text.replace("\n", "\r").encode(), "its lines end with CR alone"),
        (lambda text: text.encode("utf-16"), "is UTF-16 or UTF-32"),
        (lambda text: text.encode("utf-16-be"), "is UTF-16 or UTF-32"),
        (lambda text: ("\ufeff\ufeff" + text).encode(), "two byte order marks"),
    ],
)
def test_other_encodings_and_line_ends_are_named(
    tmp_path: Path, read: Any, suffix: str, encode: Any, fault: str
) -> None:
    path = tmp_path / f"a{suffix}"
    data = encode(f"{HEADER}u,1,a\nv,1,b\n")
    path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    with pytest.raises(MalformedLine, match=fault) as caught:
        read(path)
    assert caught.value.where == f"{path}:1"


def test_a_cr_in_a_long_first_line_is_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r" + b"b" * 300_000 + b"\nc")
    assert len(read_text(path)) == 300_004


@pytest.mark.parametrize("cell", ["0x3", "0X3", " 0x3", "1_0"])
def test_a_hexadecimal_number_is_no_identifier(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "u.data"
    path.write_text(f"1\t2\n{cell}\t2\n")
    layout = Layout(columns={"user": "int32", "item": "int32"}, delimiter="\t", header=False)
    with pytest.raises(MalformedLine, match="user is not a whole number") as caught:
        read_table(path, layout)
    assert caught.value.where == f"{path}:2"


def test_a_text_with_0x_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,note\n1,0x3\n2,b\n")
    table = read_table(path, Layout(columns={"user": "int32", "note": "text"})).table
    assert table.to_pydict() == {"user": [1, 2], "note": ["0x3", "b"]}


def test_an_escaped_emoji_is_one_character(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text('name: "\\ud83d\\ude00"\n')
    assert read_yaml(path).data == {"name": "\U0001f600"}
    assert parse_json('"\\ud83d\\ude00"', path) == "\U0001f600"


def test_a_table_without_rows_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER)
    with pytest.raises(MalformedLine, match="no rows") as caught:
        read_text_table(path)
    assert (caught.value.where, bool(caught.value.remedy)) == (str(path), True)
    assert not len(read_file(path, COLUMNS).rows)
