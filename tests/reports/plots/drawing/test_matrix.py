from __future__ import annotations

import pytest

from recbias.reports.svg import WIDTH, Matrix, Plot
from reports.plots.svg_reading import find_elements, read_texts, read_tooltips


def test_names_label_rows_and_columns() -> None:
    matrix = Matrix(["a", "b" * 30], 10, (10, 20))
    texts = read_texts(Plot("p", "t", "c", matrix.foot, matrix.draw_labels()))
    assert texts == ["a", "a", "bbbbbb…bbb", "bbbbbb…bbb"]


def test_cell_lies_in_its_row_and_column() -> None:
    matrix = Matrix(["a", "b"], 10, (10, 20))
    cells = [matrix.draw_cell(cell, "same", str(cell), ("x", "mid")) for cell in ((0, 1), (1, 0))]
    plots = [Plot("p", "t", "c", matrix.foot, cell) for cell in cells]
    upper, lower = (find_elements(plot, "rect", "same")[0] for plot in plots)
    assert float(upper.get("x", "")) - float(lower.get("x", "")) == pytest.approx(20)
    assert float(lower.get("y", "")) - float(upper.get("y", "")) == pytest.approx(20)
    assert read_tooltips(plots[0]) == ["(0, 1)"]
    assert read_texts(plots[0]) == ["x"]


def test_many_names_make_the_plot_wider() -> None:
    assert Matrix(["a"], 10, (10, 20)).width == WIDTH
    assert Matrix(["a"] * 90, 10, (10, 20)).width > 900
