from __future__ import annotations

import pyarrow as pa
import pytest

from recbias.core.errors import MalformedLine
from recbias.formats.text_cells import parse_numbers, shorten


def locate(row: int) -> str:
    return f"a.csv:{row + 2}"


def test_cells_are_parsed_as_numbers() -> None:
    column = pa.chunked_array([["1", " 2.5\t"], ["1e400"]])
    assert parse_numbers(column, "rank", locate).tolist() == [1.0, 2.5, float("inf")]


def test_the_first_cell_that_is_not_a_number_is_reported() -> None:
    column = pa.chunked_array([["nan", "1"], ["x" * 999, "y"]])
    with pytest.raises(MalformedLine, match=r"the rank 'xxx.*\.\.\. is not a number") as caught:
        parse_numbers(column, "rank", locate)
    assert caught.value.where == "a.csv:4"


def test_long_values_are_truncated() -> None:
    assert shorten(5) == "5"
    assert len(shorten("x" * 999)) == 60
