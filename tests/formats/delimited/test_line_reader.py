from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from recbias.formats.delimited.arrow_reader import read_with_arrow
from recbias.formats.delimited.file_blocks import Block, read_blocks
from recbias.formats.delimited.line_reader import (
    Record,
    find_line,
    parse_records,
    read_line_by_line,
)

from recbias.core.errors import MalformedLine
from recbias.formats.delimited import Layout

PLAIN = Layout(columns={"user": "int32", "rating": "float32"}, delimiter="::", header=False)
QUOTED = Layout(columns={"id": "id", "note": "text"}, quoted=True)
WHERE = Path("ratings.dat")


def read(
    layout: Layout, data: bytes, *, skip_bad_lines: bool = False
) -> tuple[dict[str, list[object]], int]:
    block = Block(WHERE, 0, len(data), data)
    return read_line_by_line(block, layout, list(layout.columns), skip_bad_lines=skip_bad_lines)


def test_blank_lines_are_skipped() -> None:
    assert read(PLAIN, b"1::4.5\r\n\n 2 ::-3\n") == ({"user": [1, 2], "rating": [4.5, -3.0]}, 0)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"1", "has 1 cells, not 2 (user::rating)"),
        (b"1::2::3", "has 3 cells, not 2 (user::rating)"),
        (b"x::2", "user is not a whole number: 'x'"),
        (b"1.5::2", "user is not a whole number: '1.5'"),
        (b"1_0::2", "user is not a whole number: '1_0'"),
        (b"::2", "user is empty"),
        (b"2147483648::2", "user is out of range: '2147483648'"),
        (b"1::", "rating is empty"),
        (b"1::nan", "rating is not a finite number: 'nan'"),
        (b"1::inf", "rating is not a finite number: 'inf'"),
        (b"1::1e39", "rating is not a finite number: '1e39'"),
        (b"1::1_0", "rating is not a finite number: '1_0'"),
        (b"1::five", "rating is not a number: 'five'"),
        (b"\xff::2", "is not utf-8: invalid start byte"),
    ],
)
def test_a_malformed_line_is_reported_or_skipped(line: bytes, problem: str) -> None:
    with pytest.raises(MalformedLine) as caught:
        read(PLAIN, b"1::2\n\n" + line + b"\n3::4\n")
    assert (caught.value.message, caught.value.where) == (problem, "ratings.dat:3")
    assert "bad_lines=skip" in caught.value.remedy
    assert read(PLAIN, line + b"\n3::4\n", skip_bad_lines=True) == (
        {"user": [3], "rating": [4.0]},
        1,
    )


def test_a_quoted_row_is_located_by_its_first_line() -> None:
    data = b'a,"1\n2"\n\nb,"x ""y"", z"\r\n'
    assert list(parse_records(Block(Path("x"), 0, len(data), data), QUOTED)) == [
        Record(0, 2, ["a", "1\n2"]),
        Record(3, 1, ["b", 'x "y", z']),
    ]


def test_an_open_quote_spans_the_remaining_lines() -> None:
    columns, bad = read(QUOTED, b'a,1\nb,"2\nc,3\nd,4\n', skip_bad_lines=True)
    assert (columns["id"], bad) == (["a"], 3)
    with pytest.raises(MalformedLine, match="a quote is never closed") as caught:
        read(QUOTED, b'a,1\nb,"2\nc,3\nd,4\n')
    assert caught.value.where == "ratings.dat:2"


def test_a_quoted_cell_may_be_long_and_must_be_utf_8() -> None:
    long = "x" * 200_000
    assert read(QUOTED, f'a,"{long}"\n'.encode())[0]["note"] == [long]
    with pytest.raises(MalformedLine, match="is not utf-8"):
        read(QUOTED, b"a,\xff\n")


def test_malformed_lines_do_not_count_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(b'id,note\na,"1\n2"\nwrong\nb,3\n')
    # lines: 1 header, 2-3 a, 4 wrong, 5 b
    assert [find_line(path, QUOTED, ["id", "note"], skip=8, row=row) for row in (0, 1)] == [2, 5]


@pytest.mark.parametrize("delimiter", [",", "\t", "::"])
@pytest.mark.parametrize("quoted", [False, True])
def test_a_carriage_return_alone_ends_a_line_as_it_does_for_arrow(
    tmp_path: Path, delimiter: str, quoted: bool
) -> None:
    layout = Layout(
        columns={"user": "id", "note": "text"},
        delimiter=delimiter,
        header=False,
        quoted=quoted and len(delimiter) == 1,
    )
    path, n_read = tmp_path / "ratings.dat", 0
    for ends in itertools.product(["\n", "\r", "\r\n", "\r\r\n", "\n\r", "\r\r"], repeat=3):
        cells = [f"{user}{delimiter}{user}{end}" for user, end in zip("abc", ends, strict=True)]
        data = "".join(cells).encode()
        path.write_bytes(data)
        table = read_with_arrow(Block(path, 0, len(data), data), layout, ["user", "note"])
        n_read += table is not None
        assert read(layout, data) == ({"user": [*"abc"], "note": [*"abc"]}, 0)
        assert table is None or table.to_pydict() == read(layout, data)[0]
    assert n_read == 6**3


def test_a_faulty_line_behind_carriage_returns_has_its_number(tmp_path: Path) -> None:
    path = tmp_path / "ratings.dat"
    path.write_bytes(b"1::1\r2::2\r\n3::3\nx::4\r")
    layout, names = PLAIN, ["user", "rating"]
    assert find_line(path, layout, names, skip=0, row=1) == 2
    *_, block = read_blocks(path, size=14)
    assert block.start
    with pytest.raises(MalformedLine, match=r"ratings\.dat:4: user is not a whole number: 'x'"):
        read_line_by_line(block, layout, names, skip_bad_lines=False)
