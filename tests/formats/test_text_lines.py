from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest
from recbias.formats.text_lines import TextLines, parse_numbers, read_first_line, shorten

from recbias.core.errors import MalformedLine


def write(folder: Path, text: str) -> Path:
    path = folder / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_a_quoted_cell_may_contain_line_ends(tmp_path: Path) -> None:
    lines = TextLines(write(tmp_path, 'a,b\n"x\ny",1\n\nz,2\n'))
    assert list(lines.records()) == [(1, ["a", "b"]), (2, ["x\ny", "1"]), (5, ["z", "2"])]
    assert lines.locate(1).endswith("a.txt:5")
    assert lines.read(["b"]).to_pydict() == {"b": ["1", "2"]}


def test_rows_without_a_header_are_counted_from_the_first_line(tmp_path: Path) -> None:
    path = write(tmp_path, '1\t"\t3\r\n\n4\t\t6')
    lines = TextLines(path, "\t", header=False, quoted=False)
    assert list(lines.records()) == [(1, ["1", '"', "3"]), (3, ["4", "", "6"])]
    assert lines.locate(0).endswith("a.txt:1")
    assert lines.read(["a", "b", "c"])["b"].to_pylist() == ['"', ""]


@pytest.mark.parametrize("text", [" a   b\n", "a b\n", "a\tb\n", "\na  b \n\n"])
def test_any_number_of_spaces_and_tabs_separates_cells(tmp_path: Path, text: str) -> None:
    lines = TextLines(write(tmp_path, text), None, header=False, quoted=False)
    assert [cells for _, cells in lines.records()] == [["a", "b"]]
    assert lines.read(["x", "y"]).to_pylist() == [{"x": "a", "y": "b"}]


def test_cells_of_any_length_are_read_as_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n007," + "x" * 3_000_000 + "\n")
    table = TextLines(path).read(["b", "a"])
    assert table.column_names == ["b", "a"]
    assert table["a"].to_pylist() == ["007"]
    assert table["b"].to_pylist() == ["x" * 3_000_000]


def test_an_empty_file_without_header_has_no_rows(tmp_path: Path) -> None:
    lines = TextLines(write(tmp_path, ""), None, header=False, quoted=False, width=1)
    assert lines.read(["x"]).num_rows == 0


@pytest.mark.parametrize(
    ("width", "message", "line"), [(None, "1 cells, not 2", ":2"), (1, "2 cells, not 1", ":1")]
)
def test_the_first_line_of_another_width_is_reported(
    tmp_path: Path, width: int | None, message: str, line: str
) -> None:
    lines = TextLines(write(tmp_path, "a,b\nc\n"), width=width)
    with pytest.raises(MalformedLine) as caught:
        lines.read(["a"])
    assert (caught.value.message, caught.value.where[-2:]) == (message, line)


def test_the_reason_of_arrow_is_reported_if_all_lines_have_the_same_width(tmp_path: Path) -> None:
    with pytest.raises(MalformedLine, match="Empty CSV file"):
        TextLines(write(tmp_path, "")).read(["c"])


def test_the_first_line_is_the_first_that_is_not_blank(tmp_path: Path) -> None:
    assert read_first_line(write(tmp_path, "\n \r\na b\r\nc")) == "a b"
    assert read_first_line(write(tmp_path, "")) == ""
    (tmp_path / "a.gz").write_bytes(gzip.compress("\ufeffä\n".encode()))
    assert read_first_line(tmp_path / "a.gz") == "ä"


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
