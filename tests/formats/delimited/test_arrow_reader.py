from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recbias.formats.delimited.arrow_reader import count_digits, read_with_arrow
from recbias.formats.delimited.file_blocks import Block
from recbias.formats.delimited.line_reader import read_line_by_line

from recbias.core.errors import MalformedLine
from recbias.formats.delimited import Layout

RATINGS = Layout(
    columns={"user": "int32", "item": "int32", "rating": "float32"}, delimiter="::", header=False
)
NAMES = list(RATINGS.columns)


def build_block(lines: bytes) -> Block:
    return Block(Path("x"), 0, len(lines), lines)


@pytest.mark.parametrize(
    "lines",
    [
        b"1::20::5\n300::4::1\n",  # whole numbers that add up
        b"1::20::5\r\n300::4::1\r\n",  # a byte more a line
        b"1::20::5\n300::4::1",  # a byte less
        b"01:: 20::5\n300::4::1\n",
        b"-1::20::5\n300::4::1\n",
        b"1::20::4.5\n300::4::1\n",
        b"1::20::500\n300::4::1\n",  # no rating of one byte
        b"1::20::5\n" * 20_000
        + b"1::20::4.5\n",  # a decimal point after the bytes that are searched
    ],
)
def test_ratings_are_read_however_they_are_written(lines: bytes) -> None:
    table = read_with_arrow(build_block(lines), RATINGS, NAMES)
    columns, _ = read_line_by_line(build_block(lines), RATINGS, NAMES, skip_bad_lines=False)
    assert table.schema == RATINGS.schema()
    assert table.to_pydict() == columns


@pytest.mark.parametrize(
    "lines",
    [
        b"1:9:20::5\n300::4::1",  # something between the two: one byte more, none at the end
        b"1::20:9:5\n300::4::1\n",
        b"1::20::\n300::4::1\n",
        b"1::20\n300::4::1\n",
        b"1::20::nan\n300::4::1\n",
        b"1::20::1e39\n300::4::1\n",
        b"x::20::5\n",
    ],
)
def test_suspicious_lines_are_left_to_the_line_reader(lines: bytes) -> None:
    assert read_with_arrow(build_block(lines), RATINGS, NAMES) is None


@given(
    text=st.text(st.sampled_from("0123456789::::.- \n\n"), max_size=40),
    ended=st.booleans(),
)
def test_arrow_and_the_line_reader_agree(text: str, ended: bool) -> None:
    lines = (text + "\n" * ended).encode()
    table = read_with_arrow(build_block(lines), RATINGS, NAMES) if lines.strip() else None
    try:
        columns, _ = read_line_by_line(build_block(lines), RATINGS, NAMES, skip_bad_lines=False)
    except MalformedLine:
        columns = None
    if table is not None:
        assert table.to_pydict() == columns


@given(st.lists(st.integers(0, 2**62), max_size=20))
def test_digits_are_counted(values: list[int]) -> None:
    assert count_digits(np.array(values, dtype=np.int64)) == sum(
        len(str(value)) for value in values
    )
