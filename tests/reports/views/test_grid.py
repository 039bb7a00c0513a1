from __future__ import annotations

import math

import pytest

from recbias.reports.wording import Cell, Column, Table


def test_a_cell_of_text_has_no_value() -> None:
    assert math.isnan(Cell("ItemKNN").value)
    assert not Cell("ItemKNN").best


def test_tables_with_the_same_cells_are_equal() -> None:
    first, second = (Table("t", (Column("a"),), ((Cell("x", 1.0),),)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("numeric", "headers", "width"),
    [((False, True), 1, 2), ((False, False, True), 2, 2), ((False, False), 1, 2)],
)
def test_columns_before_the_first_numeric_one_head_the_row(
    numeric: tuple[bool, ...], headers: int, width: int
) -> None:
    columns = tuple(Column("c", numeric=flag) for flag in numeric)
    row = (Cell("x", mark="abc"), *(Cell("y", mark="ab") for _ in numeric[1:]))
    table = Table("t", columns, (row,))
    assert table.row_headers == headers
    assert table.mark_width == width


def test_selected_columns_keep_their_order_and_the_notes() -> None:
    columns = tuple(map(Column, "abc"))
    table = Table("t", columns, (tuple(map(Cell, "xyz")),), ("note",)).select("c", "a")
    assert [column.title for column in table.columns] == ["a", "c"]
    assert [cell.text for cell in table.rows[0]] == ["x", "z"]
    assert table.notes == ("note",)
