from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.formats.delimited import (
    Kind,
    Layout,
    file_blocks,
    find_line_of_row,
    read_table,
    refuse_repeats,
)
from recbias.formats.encode_ids import encode

RATINGS = Layout(
    columns={"user": "int32", "item": "int32", "rating": "float32", "timestamp": "int64"},
    delimiter="::",
    header=False,
)
TEXTS = Layout(columns={"id": "id", "note": "text"}, quoted=True)

row = st.tuples(
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.sampled_from([0.5, 1.0, 4.5, -2.0]),
    st.integers(-(2**40), 2**40),
)
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@given(rows=st.lists(row, max_size=30))
def test_ratings_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, float, int]]
) -> None:
    path = tmp_path_factory.mktemp("reading") / "ratings.dat"
    path.write_text("".join("::".join(map(str, cells)) + "\n" for cells in rows))
    table = read_table(path, RATINGS)
    columns = [table.numbers(name).tolist() for name in RATINGS.columns]
    assert list(zip(*columns, strict=True)) == rows


@given(rows=st.lists(st.tuples(text.filter(bool), text), max_size=20), size=st.integers(1, 60))
def test_quoted_text_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], size: int
) -> None:
    path = tmp_path_factory.mktemp("reading") / "notes.csv"
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("id", "note"), *rows])
    path.write_bytes(text.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_blocks, "READ_SIZE", size)
        patch.setattr(file_blocks, "PIECE_SIZE", size)
        table = read_table(path, TEXTS)
    expected = [(name, note or None) for name, note in rows]
    assert list(zip(table.texts("id"), table.texts("note"), strict=True)) == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("1::2::3", "has 3 cells"),
        ("1::2::5::", "timestamp is empty"),
        ("1::2::5:9", "has 3 cells"),
        ("1:9:2::5::9", "has 3 cells"),
        ("1::2::nan::9", "rating is not a finite number"),
        ("1::2::5::9.5", "timestamp is not a whole number"),
        ("a::2::5::9", "user is not a whole number"),
        ("1::2::5::9::9", "has 5 cells"),
        ("   ", "has 1 cells"),
    ],
)
@pytest.mark.parametrize("size", [10, 2**20])
def test_a_malformed_line_in_a_large_file_is_reported_or_skipped(
    tmp_path: Path, line: str, problem: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_blocks, "SEEK_SIZE", 3 * size)
    monkeypatch.setattr(file_blocks, "PIECE_SIZE", size)
    path = tmp_path / "ratings.dat"
    good = [f"{i}::7::4::{i}" for i in range(500)]
    path.write_text("\n".join([*good[:321], line, *good[321:]]) + "\n")
    with pytest.raises(MalformedLine, match=problem) as caught:
        read_table(path, RATINGS)
    assert caught.value.where == f"{path}:322"
    with collect_warnings() as notes:
        table = read_table(path, RATINGS, bad_lines="skip")
    assert (len(table), table.bad_lines) == (500, 1)
    assert notes == ["ratings.dat: 1 malformed line(s) skipped"]


@pytest.mark.parametrize(
    ("content", "n_rows"),
    [
        (b"", 0),
        (b"1::2::3::4\r\n2::2::3::4\r\n", 2),
        (b"\n\n1::2::3::4\n\n", 1),
        (b"\xef\xbb\xbf1::2::3::4\n", 1),
    ],
)
def test_line_ends_blank_lines_and_byte_order_mark(
    tmp_path: Path, content: bytes, n_rows: int
) -> None:
    path = tmp_path / "ratings.dat"
    path.write_bytes(content)
    assert len(read_table(path, RATINGS)) == n_rows


def test_a_last_line_without_line_end_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat"
    path.write_bytes(b"1::2::3::4\n1::3::3::40")
    with collect_warnings() as notes:
        assert len(read_table(path, RATINGS)) == 2
    assert notes == ["ratings.dat: the last line has no line end; the file may be truncated"]


def test_a_missing_number_is_nan_in_a_column_that_allows_it(tmp_path: Path) -> None:
    path = tmp_path / "books.csv"
    path.write_text("id,year\na,1999\nb,\nc,-720\n")
    columns: dict[str, Kind] = {"id": "id", "year": "float64"}
    years = read_table(path, Layout(columns=columns)).numbers("year")
    np.testing.assert_array_equal(years, [1999, np.nan, -720])
    columns["year"] = "int32"
    with pytest.raises(MalformedLine, match="year is empty") as caught:
        read_table(path, Layout(columns=columns))
    assert caught.value.where == f"{path}:3"


@pytest.mark.parametrize(
    ("content", "error", "message", "remedy"),
    [
        (b"", MalformedLine, "no header", "first line"),
        (b"\n", MalformedLine, "no header", "first line"),
        (b"id,text\n", UnknownColumn, "no column 'note'", "valid names are id, text"),
        (b"id,notes\n", UnknownColumn, "no column 'note'", "did you mean notes"),
        (b"id,note,id\n", MalformedLine, "two columns are called 'id'", "its own name"),
    ],
)
def test_invalid_headers_are_rejected(
    tmp_path: Path, content: bytes, error: type[MalformedLine], message: str, remedy: str
) -> None:
    path = tmp_path / "notes.csv"
    path.write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        read_table(path, TEXTS)
    assert caught.value.where == f"{path}:1"
    assert remedy in caught.value.remedy


def test_an_open_quote_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id,note\na,1\nb,"2\nc,3\n')
    with pytest.raises(MalformedLine, match="never closed") as caught:
        read_table(path, TEXTS)
    assert caught.value.where == f"{path}:3"


def test_a_quote_inside_a_cell_is_text(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id,note\na,5" disk\nb,2\n')
    assert read_table(path, TEXTS).texts("note").tolist() == ['5" disk', "2"]


def test_rows_can_be_selected_per_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_blocks, "SEEK_SIZE", 30)
    path = tmp_path / "ratings.dat"
    path.write_text("".join(f"{i}::1::{i % 6}::0\n" for i in range(60)))
    sizes: list[int] = []

    def keep(table: Any) -> Any:
        sizes.append(table.num_rows)
        return table.slice(0, 1)

    rows = read_table(path, RATINGS, keep=keep)
    assert sum(sizes) == 60
    assert len(rows) == len(sizes) > 10


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        read_table(tmp_path / "none.dat", RATINGS)


def test_a_repeated_identifier_is_reported_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text('id,note\na,"1\n2"\nb,3\na,4\n')
    ids, (codes,) = encode(read_table(path, TEXTS).table["id"])
    with pytest.raises(MalformedLine, match="'a' has a row already") as caught:
        refuse_repeats(path, TEXTS, codes, ids)
    assert caught.value.where == f"{path}:5"
    assert "line 2" in caught.value.remedy
    assert find_line_of_row(path, TEXTS, 1) == 4
