from __future__ import annotations

import pyarrow as pa
import pytest

from recbias.formats.json_line_parser import parse_lines

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
