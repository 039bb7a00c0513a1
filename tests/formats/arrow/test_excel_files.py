from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from recbias.formats.arrow import excel_files
from recbias.formats.arrow.excel_files import read_sheet

from recbias.core.errors import MalformedLine, UnknownColumn
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


def rewrite(path: Path, old: str, new: str, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Replace a text in the sheet of a workbook."""
    with zipfile.ZipFile(path) as archive:
        members = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            is_sheet = name == "xl/worksheets/a.xml"
            archive.writestr(
                name, content.replace(old.encode(), new.encode()) if is_sheet else content
            )
    return path


END = "</sheetData>"
CELL = "<c><v>1</v></c>"


@pytest.mark.parametrize(
    ("rows", "extent"),
    [
        ('<row r="9"><c r="XFD1048576"><v>1</v></c></row>', "1,048,577 rows and 16,384 columns"),
        ('<row r="9"><c r="A4294967295"/></row>', "4,294,967,296 rows and 4 columns"),
        ('<x:row r = "9"><x:c s="1" r\n=\'ZZZZZ7\'/></x:row>', "12,356,630 columns"),
        (f'<row r="{"9" * 5000}">{CELL}</row>', "rows and 4 columns"),
        (f"<row>{CELL * 3000}</row>" + f"<row>{CELL}</row>" * 1000, "2,006 rows and 3,000"),
        (f'<row><c r="A4"/>{" " * 2**21}<c r="XFD1048576"/></row>', "bytes without a tag"),
    ],
)
def test_a_sheet_of_few_cells_that_extends_far_is_refused(
    tmp_path: Path, rows: str, extent: str
) -> None:
    path = rewrite(write_excel(tmp_path / "a.xlsx", ROWS), END, f"{rows}{END}")
    with pytest.raises(MalformedLine, match=extent):
        read_sheet(path)


def test_cells_apart_from_the_table_are_read(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", [("id", "rank"), ("a", 1)])
    rewrite(path, END, f'<row r="20000"><c r="B20000"><v>7</v></c></row>{END}')
    table = read_sheet(path)
    assert table.num_rows == 19_999
    assert table["rank"].to_pylist()[-1] == 7


def test_a_workbook_that_promises_too_many_strings_is_refused(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", ROWS)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/sharedStrings.xml", '<sst uniqueCount="99999999999"></sst>')
    with pytest.raises(MalformedLine, match="promises 99,999,999,999 strings"):
        read_sheet(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused(tmp_path: Path, method: int) -> None:
    path = rewrite(write_excel(tmp_path / "a.xlsx", ROWS), "", "", method)
    with pytest.raises(MalformedLine, match="which is not supported") as caught:
        read_sheet(path)
    assert "deflate" in caught.value.remedy


def test_infinite_numbers_and_other_spreadsheets_are_refused(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", [("id", "rank"), ("a", 1)])
    with pytest.raises(MalformedLine, match="infinity"):
        read_sheet(rewrite(path, "<v>1</v>", "<v>1e999</v>"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("content.xml", "<x/>")
    with pytest.raises(MalformedLine, match=r"contains content\.xml"):
        read_sheet(path)
