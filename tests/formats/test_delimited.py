"""Delimited text: whichever parser reads a block, and wherever it ends, the rows are the same."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine
from recbias.formats import delimited
from recbias.formats.delimited import Kind, Layout, place_row, read_table

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


def write(folder: Path, content: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def read(
    path: Path, layout: Layout, *, skip: bool = False, size: int = 2**20, arrow: bool = True
) -> Any:
    """Return what is read in blocks of a size: rows and skipped lines, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK_SIZE", size)
        if not arrow:
            patch.setattr(delimited, "_parse", lambda *_: None)
        try:
            rows = read_table(path, layout, bad_lines="skip" if skip else "error")
        except MalformedLine as error:
            return error.where, error.message
    return rows.cells.to_pydict(), rows.bad_lines


@pytest.mark.filterwarnings("ignore:table.csv")
@given(text=st.text(st.sampled_from("0123456789::::.- \n\n"), max_size=40), ended=st.booleans())
def test_arrow_and_the_line_by_line_parser_read_the_same_numbers(
    tmp_path_factory: pytest.TempPathFactory, text: str, ended: bool
) -> None:
    columns: dict[str, Kind] = {"user": "int32", "item": "int32", "rating": "float32"}
    layout = Layout(columns=columns, delimiter="::", header=False)
    path = write(tmp_path_factory.mktemp("table"), text + "\n" * ended)
    assert read(path, layout) == read(path, layout, arrow=False)


@given(rows=st.lists(row, max_size=30))
def test_ratings_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, float, int]]
) -> None:
    lines = "".join("::".join(map(str, cells)) + "\n" for cells in rows)
    table = read_table(write(tmp_path_factory.mktemp("reading"), lines), RATINGS)
    columns = [table.numbers(name).tolist() for name in RATINGS.columns]
    assert list(zip(*columns, strict=True)) == rows


@given(rows=st.lists(st.tuples(text.filter(bool), text), max_size=20), size=st.integers(1, 60))
def test_quoted_text_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], size: int
) -> None:
    content = io.StringIO(newline="")
    csv.writer(content, quoting=csv.QUOTE_ALL).writerows([("id", "note"), *rows])
    path = write(tmp_path_factory.mktemp("reading"), content.getvalue())
    columns, _ = read(path, TEXTS, size=size)
    assert list(zip(columns["id"], columns["note"], strict=True)) == rows


@pytest.mark.parametrize("size", [10, 2**20])
def test_a_malformed_line_in_a_large_file_is_placed_or_skipped(tmp_path: Path, size: int) -> None:
    good = [f"{i}::7::4::{i}" for i in range(500)]
    path = write(tmp_path, "\n".join([*good[:321], "1::2::3", *good[321:]]) + "\n")
    where, message = read(path, RATINGS, size=size)
    assert (where, message[:11]) == (f"{path}:322", "has 3 cells")
    with collect_warnings() as notes:
        columns, n_bad = read(path, RATINGS, skip=True, size=size)
    assert (len(columns["user"]), n_bad) == (500, 1)
    assert notes == ["table.csv: 1 malformed line(s) skipped"]


@pytest.mark.parametrize(
    ("content", "n_rows"),
    [
        ("", 0),
        ("1::2::3::4\r\n2::2::3::4\r\n", 2),
        ("\n\n1::2::3::4\n\n", 1),
        ("\ufeff1::2::3::4\n", 1),
        (" 1 :: 2::-3::4\n", 1),
        ("1::2::500::4\n", 1),
        ("1::2::3::4\n" * 20_000 + "1::2::4.5::4\n", 20_001),
    ],
)
def test_line_ends_blanks_and_numbers_of_other_sizes(
    tmp_path: Path, content: str, n_rows: int
) -> None:
    assert len(read_table(write(tmp_path, content), RATINGS)) == n_rows


def test_latin_1_is_read_where_the_layout_says_so(tmp_path: Path) -> None:
    path = tmp_path / "u.item"
    path.write_bytes(b'1|Am\xe9lie\n2|5" nail\n')
    columns: dict[str, Kind] = {"item": "int32", "title": "text"}
    layout = Layout(columns=columns, delimiter="|", header=False, encoding="latin-1")
    assert read_table(path, layout).texts("title").tolist() == ["Amélie", '5" nail']


def test_a_stray_quote_before_the_end_of_a_block_hides_no_cell(tmp_path: Path) -> None:
    plain = [(f"i{n}", "a plain note") for n in range(3_000)] + [("stray", '5" nail')]
    quoted = [(f"m{n}", "two\nlines") for n in range(2_000)]
    content = io.StringIO(newline="")
    content.write("id,note\n" + "".join(f"{name},{note}\n" for name, note in plain))
    csv.writer(content, lineterminator="\n").writerows(quoted)
    path = write(tmp_path, content.getvalue())
    columns, _ = read(path, TEXTS, size=2**14)
    assert [*zip(*columns.values(), strict=True)] == plain + quoted


def test_the_header_may_follow_blank_lines_and_hold_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeff\n"id\nx",note\na,1\n')
    table = read_table(path, Layout(columns={"id\nx": "id", "note": "int32"}, quoted=True)).cells
    assert table.to_pydict() == {"id\nx": ["a"], "note": [1]}
    assert place_row(path, Layout(columns={"note": "text"}, quoted=True), 0) == f"{path}:4"
