from __future__ import annotations

import json
from pathlib import Path

import pytest

from recbias.core.errors import Unwritable
from recbias.formats.text_files import guard_formula, write_file, write_json_lines, write_sheet


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = write_file(tmp_path / "new" / "file.txt", b"first")
    with pytest.raises(Unwritable, match="exists and is not overwritten") as caught:
        write_file(path, b"second")
    assert (path.read_bytes(), caught.value.where) == (b"first", str(path))
    assert [child.name for child in path.parent.iterdir()] == ["file.txt"]


def test_a_folder_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot be written") as caught:
        write_file(tmp_path / "file" / "below.txt", b"")
    assert caught.value.remedy


def test_json_lines_keep_the_text(tmp_path: Path) -> None:
    rows = [{"text": "=1+1"}, {"text": "a\nb"}, {"text": "妈妈"}]
    lines = write_json_lines(tmp_path / "rows.jsonl", rows).read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows


@pytest.mark.parametrize("start", [*"=+-@＝", "\t", "\r", "\n"])
def test_no_cell_of_a_sheet_is_a_formula(tmp_path: Path, start: str) -> None:
    assert guard_formula(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"
    path = write_sheet(tmp_path / "sheet.csv", ("text",), [(f"{start}1",), ("plain, text",)])
    content = path.read_bytes().decode("utf-8-sig")
    assert f"'{start}1" in content
    assert '"plain, text"' in content
