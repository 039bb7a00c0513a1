from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn
from recbias.core.stage_context import collect_warnings
from recbias.formats.delimited import SKIP_HINT, require_every_line
from recbias.formats.tables import TableColumns, infer_column, read_file
from recbias.formats.text_files import require_file

ITEMS = TableColumns(needed={"item_id": "id"}, others=True)
RATED = TableColumns(needed={"item_id": "id"}, optional={"rating": "float32"})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz", "t.parquet"])
def test_every_kind_of_file_gives_the_same_columns(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    cells = [("item_id", "note"), ("007", "a, b"), ("7", "שלום"), ("😀", "")]
    if name.endswith(".parquet"):
        columns = {name: list(texts) for name, *texts in zip(*cells, strict=True)}
        parquet.write_table(pa.table(columns), path)
    else:
        mark = "\t" if ".tsv" in name else ","
        text = "".join(mark.join(f'"{cell}"' for cell in row) + "\n" for row in cells).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    table = read_file(path, ITEMS).rows
    assert table.texts("item_id").tolist() == ["007", "7", "😀"]
    assert table.texts("note").tolist() == ["a, b", "שלום", None]


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
    rows = read_file(path, ITEMS).rows
    assert rows.texts("item_id").tolist() == ["7", "10"]
    columns = {name: infer_column(rows.table[name]).tolist() for name in ("genres", "kind", "day")}
    assert columns == {
        "genres": ["A|B", None],
        "kind": ["x", None],
        "day": ["2019-05-25 15:54:00", None],
    }
    for name, first in (("year", 1999.0), ("pages", 24.0), ("new", 1.0)):
        np.testing.assert_array_equal(infer_column(rows.table[name]), [first, np.nan])


@pytest.mark.parametrize(
    ("column", "problem", "where"),
    [
        ({"item_id": ["a", None]}, "item_id is empty", "row 2"),
        ({"item_id": ["a", ""]}, "item_id is empty", "row 2"),
        ({"item_id": [1.0, 2.0]}, "decimal numbers", "item_id"),
        ({"item_id": [b"a", b"\xff"]}, "is a column of binary", "item_id"),
        ({"item_id": ["a", "b"], "rating": [1.0, None]}, "rating is not a finite number", "row 2"),
        ({"item_id": ["a", "b"], "rating": [1e300, 1.0]}, "rating is not a finite", "row 1"),
        ({"item_id": ["a", "b"], "rating": ["x", "y"]}, "not of numbers", "rating"),
    ],
)
def test_invalid_parquet_columns_are_rejected_with_their_row(
    tmp_path: Path, column: dict[str, list[Any]], problem: str, where: str
) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(column), path)
    with pytest.raises(MalformedLine, match=problem) as caught:
        read_file(path, RATED)
    assert caught.value.where == f"{path}: {where}"


def test_invalid_rows_of_a_parquet_file_may_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = {"item_id": ["a", None, "c", "d"], "rating": [1.0, 2.0, float("nan"), 4.0]}
    parquet.write_table(pa.table(table), path)
    with collect_warnings() as notes:
        rows = read_file(path, RATED, bad_lines="skip").rows
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


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.xlsx", b"PK", "is no Excel file"),
        ("t.xls", b"", "not a kind of table"),
        ("t.gz", b"", "not a kind of table"),
        ("t.parquet", b"not one", "is not a Parquet file"),
        ("t.parquet", b"", "is not a Parquet file"),
        ("t.csv", b"", "has no header"),
        ("t.csv", b"item_id\n\xff\n", "is not utf-8"),
        ("t.csv", b'item_id,a\n"x\n', "never closed"),
        ("t.csv.gz", b"item_id\n", "damaged"),
    ],
)
def test_files_that_are_not_tables_are_rejected(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(MalformedLine, match=problem):
        read_file(path, ITEMS)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        require_file(tmp_path / "t.csv")
    assert caught.value.remedy == "paths are relative to the experiment file"


@pytest.mark.parametrize(
    ("remedy", "expected"), [(SKIP_HINT, "correct the line"), ("keep one row", "keep one row")]
)
def test_errors_do_not_suggest_skipping_lines(remedy: str, expected: str) -> None:
    with pytest.raises(MalformedLine) as caught, require_every_line():
        raise MalformedLine("2 cells instead of 3", where="a.csv:7", remedy=remedy)
    assert str(caught.value) == "a.csv:7: 2 cells instead of 3"
    assert caught.value.remedy == expected
