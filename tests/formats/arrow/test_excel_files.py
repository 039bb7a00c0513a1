from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.formats.arrow import excel_files
from recbias.formats.arrow.excel_files import read_sheet
from recbias.formats.tables import TableColumns, list_file_columns, read_file
from support.files.excel_files import write_excel

ROWS: list[tuple[str | float | None, ...]] = [
    ("id", "rank", "price", "name"),
    ("007", 1, 1.5, "A & B"),
    ("8", 2, None, None),
]
COLUMNS = TableColumns(needed={"id": "id", "rank": "id"}, others=True)


def test_columns_are_numbers_where_each_cell_is_one(tmp_path: Path) -> None:
    table = read_sheet(write_excel(tmp_path / "a.xlsx", ROWS)).to_pydict()
    assert table == {
        "id": ["007", "8"],
        "rank": [1, 2],
        "price": [1.5, None],
        "name": ["A & B", None],
    }


def test_a_table_is_read_as_from_a_text_file(tmp_path: Path) -> None:
    text = tmp_path / "a.csv"
    text.write_text("id,rank,price,name\n007,1,1.5,A & B\n8,2,,\n")
    excel = write_excel(tmp_path / "a.xlsx", ROWS)
    assert list_file_columns(excel) == list_file_columns(text)
    frames = [read_file(path, COLUMNS).rows.table.to_pandas() for path in (text, excel)]
    assert frames[1][["id", "rank"]].equals(frames[0][["id", "rank"]])
    assert frames[1]["name"].tolist() == frames[0]["name"].tolist() == ["A & B", ""]
    assert frames[0]["price"].tolist() == ["1.5", ""]
    np.testing.assert_equal(frames[1]["price"].to_numpy(float), [1.5, np.nan])


def test_faults_of_a_file_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_excel(tmp_path / "a.xlsx", ROWS)
    with pytest.raises(UnknownColumn, match="no column 'item'"):
        read_file(path, TableColumns(needed={"item": "id"}))
    monkeypatch.setattr(excel_files, "MAX_BYTES", 100)
    with pytest.raises(MalformedLine, match=r"bytes when unpacked, more than 100"):
        read_sheet(path)
    monkeypatch.undo()
    with pytest.raises(MalformedLine, match="two columns are called 'id'"):
        read_sheet(write_excel(path, [("id", "id"), ("1", "2")]))
    with pytest.raises(MalformedLine, match="the first sheet is empty"):
        read_sheet(write_excel(path, []))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "no workbook")
    with pytest.raises(MalformedLine, match="is no Excel file"):
        read_sheet(path)
    path.write_text("id,rank\n")
    with pytest.raises(MalformedLine, match="is no Excel file") as caught:
        read_sheet(path)
    assert caught.value.remedy == "download or save it again, or save it as CSV"
