from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from recbias.formats.limited.file_limits import (
    CELL,
    COLUMNS,
    FREE_BYTES,
    check_columns,
    get_limit,
    get_unpacked_limit,
    refuse_long_cells,
)

from recbias.core.errors import MalformedLine, WrongType
from recbias.formats.interactions import read_interactions
from recbias.formats.lists import read_rows
from recbias.formats.tables import TableColumns, read_file, read_text_table

TABLE = TableColumns(needed={"query_id": "id"}, others=True)


def test_limits_are_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (get_limit(COLUMNS), get_limit(CELL)) == (16_384, 10**7)
    monkeypatch.setenv(COLUMNS, "3")
    assert get_limit(COLUMNS) == 3
    for wrong in ("0", "-1", "many", "1e3", "\u0663x"):
        monkeypatch.setenv(COLUMNS, wrong)
        with pytest.raises(WrongType, match=COLUMNS) as caught:
            get_limit(COLUMNS)
        assert caught.value.remedy


def test_columns_are_counted_and_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    check_columns([], "a.csv:1")
    check_columns([f"c{number}" for number in range(16_384)], "a.csv:1")
    with pytest.raises(MalformedLine, match="has 16,385 columns, more than 16,384") as caught:
        check_columns([f"c{number}" for number in range(16_385)], "a.csv:1")
    assert f"{COLUMNS}=16385" in caught.value.remedy
    with pytest.raises(MalformedLine, match=r"a\.csv:1: two columns are called 'b'"):
        check_columns(["a", "b", "b"], "a.csv:1")


@pytest.mark.parametrize("read", [read_text_table, lambda path: read_file(path, TABLE), read_rows])
@pytest.mark.parametrize("long", [12, 2 * 2**20])
def test_a_long_cell_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any, long: int
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"query_id,item_id,rank\nu,i,1\nv,{'x' * long},1\n")
    read(path)
    monkeypatch.setenv(CELL, "10")
    with pytest.raises(MalformedLine, match="a cell has more than 10 characters") as caught:
        read(path)
    assert caught.value.where == f"{path}:3"
    path.write_text(f"query_id,item_id,rank\nu,i,1\nv,{'é' * 10},1\n")
    read(path)


def test_a_long_cell_of_a_column_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CELL, "3")
    columns = {"a": pa.chunked_array([["abc"], ["ü", "abcd"]]), "b": pa.chunked_array([[1, 2, 3]])}
    with pytest.raises(MalformedLine, match="row 2: a cell"):
        refuse_long_cells(columns, lambda row: f"row {row}")


def test_small_files_may_unpack_to_much() -> None:
    assert get_unpacked_limit(10) == FREE_BYTES
    assert get_unpacked_limit(2**30) == 200 * 2**30


def test_a_wide_table_names_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COLUMNS, "3")
    path = tmp_path / "a.csv"
    path.write_text("user_id,item_id,rating,note\nu,i,1,x\n")
    columns = TableColumns(needed={"user_id": "id"})
    with pytest.raises(MalformedLine, match="has 4 columns, more than 3") as caught:
        read_interactions(path, columns)
    assert caught.value.where == f"{path}:1"
