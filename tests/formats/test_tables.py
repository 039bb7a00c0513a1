"""Tables that users give, with typed columns or as text: the same from every kind of file."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.context import collect_warnings
from recbias.core.errors import MalformedLine, UnknownColumn
from recbias.formats.table_settings import infer_column
from recbias.formats.tables import TableColumns, list_file_columns, read_file, read_text_table
from recbias.formats.text_files import get_suffix, read_first_line, read_text
from support.files.excel_files import write_excel

ITEMS = TableColumns(needed={"item_id": "id"}, others=True)
RATED = TableColumns(needed={"item_id": "id"}, optional={"rating": "float32"})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet", "t.jsonl", "t.xlsx"])
def test_every_kind_of_file_gives_the_same_columns(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    cells: list[tuple[str, ...]] = [
        ("item_id", "note"), ("007", "a, b"), ("7", "שלום"), ("😀", "")
    ]  # fmt: skip
    columns = {name: list(texts) for name, *texts in zip(*cells, strict=True)}
    if name.endswith(".parquet"):
        parquet.write_table(pa.table(columns), path)
    elif name.endswith(".jsonl"):
        pd.DataFrame(columns).to_json(path, orient="records", lines=True)
    elif name.endswith(".xlsx"):
        write_excel(path, cells)
    else:
        mark = "\t" if ".tsv" in name else ","
        text = "".join(mark.join(f'"{cell}"' for cell in row) + "\n" for row in cells).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    table = read_file(path, ITEMS)
    assert list_file_columns(path) == ["item_id", "note"]
    assert table.texts("item_id").tolist() == ["007", "7", "😀"]
    assert table.optional("note").tolist() == ["a, b", "שלום", None]


def test_cells_of_json_are_those_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"item_id": 7, "genres": ["A", "B"], "year": 1999.5}\n{"item_id": "x"}\n')
    rows = read_file(path, ITEMS)
    assert rows.texts("item_id").tolist() == ["7", "x"]
    assert infer_column(rows["genres"]).tolist() == ["A|B", None]
    np.testing.assert_array_equal(infer_column(rows["year"]), [1999.5, np.nan])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2.5", "-3", "1e3"], [1.0, 2.5, -3.0, 1000.0]),
        (["1", "", "NaN", "nan"], [1.0, np.nan, np.nan, np.nan]),
        (["01234", "5"], ["01234", "5"]),
        (["0", "0.5", ".5"], [0.0, 0.5, 0.5]),
        (["1", "inf"], ["1", "inf"]),
        (["1", "1,5"], ["1", "1,5"]),
        (["", ""], [None, None]),
        (["a|b", ""], ["a|b", None]),
        (["NaN", "b"], ["NaN", "b"]),
        ([], []),
    ],
)
def test_a_column_is_numeric_if_every_cell_is_a_number(
    cells: list[str], expected: list[Any]
) -> None:
    column = infer_column(pa.chunked_array([cells], type=pa.string()))
    if expected and isinstance(expected[0], float):
        np.testing.assert_array_equal(column, expected)
    else:
        assert column.tolist() == expected


def test_parquet_columns_are_converted_by_type(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    arrays = {
        "item_id": pa.array([7, 10], pa.int64()),
        "genres": pa.array([["A", "B"], None]),
        "kind": pa.array(["x", None]).dictionary_encode(),
        "year": pa.array([1999.0, None]),
        "pages": pa.array([24, None], pa.int32()),
        "new": pa.array([True, None]),
        "day": pa.array([datetime(2019, 5, 25, 15, 54), None]),  # noqa: DTZ001  as Parquet has it
    }
    parquet.write_table(pa.table(arrays), path)
    rows = read_file(path, ITEMS)
    assert rows.optional("item_id").tolist() == ["7", "10"]
    columns = {name: infer_column(rows[name]).tolist() for name in ("genres", "kind", "day")}
    assert columns == {
        "genres": ["A|B", None],
        "kind": ["x", None],
        "day": ["2019-05-25 15:54:00", None],
    }
    for name, first in (("year", 1999.0), ("pages", 24.0), ("new", 1.0)):
        np.testing.assert_array_equal(infer_column(rows[name]), [first, np.nan])


def test_invalid_rows_of_a_parquet_file_may_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = {"item_id": ["a", None, "c", "d"], "rating": [1.0, 2.0, float("nan"), 4.0]}
    parquet.write_table(pa.table(table), path)
    with collect_warnings() as notes:
        rows = read_file(path, RATED, bad_lines="skip")
    assert rows.texts("item_id").tolist() == ["a", "d"]
    assert rows.bad_lines == 2
    assert notes == [
        "t.parquet: 1 row(s) skipped: item_id is empty",
        "t.parquet: 1 row(s) skipped: rating is not a finite number",
    ]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_nearest_name_of_a_missing_column_is_suggested(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "t.csv":
        path.write_text("items_id,title\n")
    else:
        parquet.write_table(pa.table({"items_id": ["a"], "title": ["b"]}), path)
    with pytest.raises(UnknownColumn, match="no column 'item_id'") as caught:
        read_file(path, ITEMS)
    assert str(path) in caught.value.where
    assert caught.value.remedy == "did you mean items_id?"


ROWS = [{"id": "007", "text": 'a, "b"\nc', "n": 1.5}, {"id": "x", "text": "", "n": None}]


def write_texts(folder: Path, name: str) -> Path:
    path, frame = folder / name, pd.DataFrame(ROWS)
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif ".jsonl" in name:
        text = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS) + "\n"
        open_file = gzip.open if name.endswith(".gz") else open
        with open_file(path, "wt", encoding="utf-8") as file:
            file.write(text)
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in name else ",", index=False)
    return path


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.csv.gz", "A.CSV", "a.parquet", "a.jsonl", "a.jsonl.gz"]
)
def test_every_kind_of_file_has_the_same_text(tmp_path: Path, name: str) -> None:
    table = read_text_table(write_texts(tmp_path, name))
    assert table.ids("id").tolist() == ["007", "x"]
    assert table.texts("text").tolist() == ['a, "b"\nc', ""]
    assert table.optional("text").tolist() == ['a, "b"\nc', None]
    assert table.optional("other").tolist() == [None, None]
    assert table.numbers("n").tolist() == pytest.approx([1.5, np.nan], nan_ok=True)
    assert table.labels(["id", "n"]).to_dict("list") == {"text": ['a, "b"\nc', None]}


def test_rows_know_their_line(tmp_path: Path) -> None:
    assert read_text_table(write_texts(tmp_path, "a.csv")).place(1).endswith("a.csv:4")
    assert read_text_table(write_texts(tmp_path, "a.jsonl")).place(1).endswith("a.jsonl:3")
    assert (
        read_text_table(write_texts(tmp_path, "a.parquet")).place(1).endswith("a.parquet: row 2")
    )


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_list_of_numbers_is_joined_by_spaces(tmp_path: Path, name: str) -> None:
    path, rows = tmp_path / name, [{"logs": [-1.5, -2.0]}, {"logs": []}]
    if name == "a.parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_text_table(path).texts("logs").tolist() == ["-1.5 -2.0", ""]


def test_json_objects_may_have_different_keys(tmp_path: Path) -> None:
    path, rows = tmp_path / "a.jsonl", [{"a": "1"}, {}, {"b": "2"}, {"a": 3}, {"b": None}]
    path.write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    table = read_text_table(path)
    assert table.texts("a").tolist() == ["1", "", "", "3", ""]
    assert table.texts("b").tolist() == ["", "", "2", "", ""]
    assert table.place(4).endswith("a.jsonl:9")


EXCEL: list[tuple[str | float | None, ...]] = [
    ("id", "rank", "price", "name"),
    ("007", 1, 1.5, "A & B"),
    ("8", 2, None, None),
]


def test_an_excel_file_is_read_as_a_text_file(tmp_path: Path) -> None:
    columns = TableColumns(needed={"id": "id", "rank": "id"}, others=True)
    text = tmp_path / "a.csv"
    text.write_text("id,rank,price,name\n007,1,1.5,A & B\n8,2,,\n")
    excel = write_excel(tmp_path / "a.xlsx", EXCEL)
    assert list_file_columns(excel) == list_file_columns(text)
    frames = [read_file(path, columns).cells.to_pandas() for path in (text, excel)]
    assert frames[1][["id", "rank"]].equals(frames[0][["id", "rank"]])
    assert frames[1]["name"].tolist() == frames[0]["name"].tolist() == ["A & B", ""]
    assert frames[0]["price"].tolist() == ["1.5", ""]
    assert frames[1]["price"].tolist() == ["1.5", ""]


def test_faults_of_excel_files_are_named(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", EXCEL)
    with pytest.raises(UnknownColumn, match="no column 'item'"):
        read_file(path, TableColumns(needed={"item": "id"}))
    with pytest.raises(MalformedLine, match="two columns are called 'id'"):
        list_file_columns(write_excel(path, [("id", "id"), ("1", "2")]))
    with pytest.raises(MalformedLine, match="the first sheet is empty"):
        list_file_columns(write_excel(path, []))
    path.write_bytes(write_excel(path, EXCEL).read_bytes()[:-30])
    with pytest.raises(MalformedLine, match="is no Excel file") as caught:
        list_file_columns(path)
    assert caught.value.remedy == "download or save it again, or save it as CSV"


def test_text_is_decompressed_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.TXT.GZ"
    path.write_bytes(gzip.compress("\ufeff\nä\r\nb".encode()))
    assert read_text(path) == "\nä\r\nb"
    assert read_first_line(path) == "ä"
    assert get_suffix(path) == ".txt"
