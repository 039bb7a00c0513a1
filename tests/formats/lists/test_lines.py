from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from recbias.formats.lists.lines import Lines, first_line


def written(folder: Path, text: str) -> Path:
    path = folder / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_a_quoted_cell_may_hold_line_ends(tmp_path: Path) -> None:
    lines = Lines(written(tmp_path, 'a,b\n"x\ny",1\n\nz,2\n'))
    assert list(lines.records()) == [(1, ["a", "b"]), (2, ["x\ny", "1"]), (5, ["z", "2"])]
    assert lines.place(1).endswith("a.txt:5")


def test_lines_without_header_count_from_the_first(tmp_path: Path) -> None:
    lines = Lines(written(tmp_path, '1\t"\t3\r\n\n4\t\t6'), "\t", header=False, quoted=False)
    assert list(lines.records()) == [(1, ["1", '"', "3"]), (3, ["4", "", "6"])]
    assert lines.place(0).endswith("a.txt:1")


def test_white_space_of_any_width_stands_between_cells(tmp_path: Path) -> None:
    lines = Lines(written(tmp_path, " a \t b\n"), None, header=False, quoted=False)
    assert list(lines.records()) == [(1, ["a", "b"])]


@pytest.mark.parametrize(
    ("width", "found", "line"), [(None, "1 cells, not 2", ":2"), (1, "2 cells, not 1", ":1")]
)
def test_the_first_line_of_another_width_is_named(
    tmp_path: Path, width: int | None, found: str, line: str
) -> None:
    error = Lines(written(tmp_path, "a,b\nc\n"), width=width).malformed(ValueError("why"))
    assert (error.message, error.where[-2:]) == (found, line)


def test_where_all_lines_are_of_one_width_the_reason_is_told(tmp_path: Path) -> None:
    error = Lines(written(tmp_path, "a,b\n")).malformed(ValueError("why\nat length"))
    assert error.message == "why"


def test_the_first_line_is_the_first_that_holds_anything(tmp_path: Path) -> None:
    assert first_line(written(tmp_path, "\n \r\na b\r\nc")) == "a b"
    assert first_line(written(tmp_path, "")) == ""
    (tmp_path / "a.gz").write_bytes(gzip.compress("\ufeffä\n".encode()))
    assert first_line(tmp_path / "a.gz") == "ä"
