from __future__ import annotations

import math

from recbias.reports.views.grid import Cell, Column, Table


def test_a_cell_of_text_has_no_figure() -> None:
    assert math.isnan(Cell("ItemKNN").value)
    assert not Cell("ItemKNN").best


def test_tables_with_the_same_cells_are_equal() -> None:
    first, second = (Table("t", (Column("a"),), ((Cell("x", 1.0),),)) for _ in range(2))
    assert first == second
