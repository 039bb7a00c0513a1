from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from recbias.cli.grids import Output, fitted, folded, print_grid, print_rows, width_of
from recbias.reports.views.grid import Cell, Column, Table

FIGURES = Table(
    "Results",
    (
        Column("model"),
        Column("nDCG@10", numeric=True),
        Column("log_popularity_difference@10", numeric=True),
    ),
    (
        (Cell("Random", mark="a"), Cell("0.0348"), Cell("-0.4086", mark="b")),
        (Cell("MostPop", mark="b"), Cell("0.1711", best=True, mark="a"), Cell("0.8462")),
    ),
    ("Bold: the best of the column.",),
)


def drawn(grid: Table, width: int, *, terminal: bool = True) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    print_grid(grid, console)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_where_there_is_room_figures_and_marks_stand_in_line() -> None:
    assert drawn(FIGURES, 100) == [
        "Results",
        "model       nDCG@10  log_popularity_difference@10",
        "─────────────────────────────────────────────────",
        "Random  a  0.0348                       -0.4086 b",
        "MostPop b  0.1711 a                      0.8462",
        "Bold: the best of the column.",
    ]


def test_where_there_is_less_the_titles_are_folded() -> None:
    # 9 + 2 + 8 + 2 + 15 characters; "log_popularity_" is the longest piece
    assert width_of(FIGURES) == 9 + 2 + 8 + 2 + 28
    assert drawn(FIGURES, 36)[1:4] == [
        "                     log_popularity_",
        "model       nDCG@10    difference@10",
        "────────────────────────────────────",
    ]


def test_where_there_is_little_the_table_comes_in_parts() -> None:
    # folded to 11 characters: 9 + 2 + 8 + 2 + 11 = 32
    assert drawn(FIGURES, 32).count("") == 0
    lines = drawn(FIGURES, 31)
    assert [line for line in lines if line.startswith("Random")] == [
        "Random  a  0.0348",
        "Random  a        -0.4086 b",
    ]
    assert lines.count("") == 1
    assert max(map(len, lines)) <= 31


def test_in_a_file_every_row_is_one_line_without_blanks_at_its_end() -> None:
    long = replace(FIGURES, notes=("word " * 60,))
    stream = io.StringIO()
    print_grid(long, Console(file=stream, width=20))
    lines = stream.getvalue().splitlines()
    assert lines[1] == "model       nDCG@10  log_popularity_difference@10"
    assert len(lines) == 6
    assert [line for line in lines[:-1] if line != line.rstrip()] == []


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    "text", ["[red]x[/red]", "[/]", "[link=https://x]y", "\\[b]", ":smile:", "{0} %s $HOME"]
)
def test_nothing_in_a_cell_is_taken_for_markup(text: str, terminal: bool) -> None:
    grid = Table(text, (Column(text),), ((Cell(text, mark="a"),),), (text,))
    lines = drawn(grid, 80, terminal=terminal)
    assert [line for line in lines if "─" not in line] == [text, text, f"{text} a", text]


def test_nothing_in_a_cell_moves_the_cursor() -> None:
    grid = Table("t", (Column("c"),), ((Cell("a\x1b[2Jb\rc\nd"),),))
    assert drawn(grid, 80)[-1] == r"a\x1b[2Jb\rc\nd"


@pytest.mark.parametrize(
    ("text", "limit", "lines"),
    [
        ("log_popularity_difference@10", 28, ["log_popularity_difference@10"]),
        ("log_popularity_difference@10", 15, ["log_popularity_", "difference@10"]),
        ("log_popularity_difference@10", 11, ["log_", "popularity_", "difference", "@10"]),
        ("one two three", 7, ["one two", "three"]),
        ("lenskit/FlexMFImplicit", 15, ["lenskit/", "FlexMFImplicit"]),
        ("unbreakable", 3, ["unbreakable"]),
        ("", 5, [""]),
    ],
)
def test_titles_are_folded_where_a_person_would(text: str, limit: int, lines: list[str]) -> None:
    assert folded(text, limit).split("\n") == lines


LABELS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=30)


@given(
    st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=4),
    st.lists(LABELS, max_size=4),
    st.integers(1, 120),
)
def test_any_table_fits_any_terminal(
    labels: list[tuple[str, str]], titles: list[str], width: int
) -> None:
    columns = (Column("model"), *(Column(title, numeric=True) for title in titles))
    rows = tuple(
        (Cell(label, mark="a"), *(Cell("0.1234", mark=mark) for _ in titles))
        for label, mark in labels
    )
    grid = Table("", columns, rows)
    parts = fitted(grid, width)
    assert sum(len(part.columns) - 1 for part in parts) == len(titles) or not titles
    assert all(part.columns[0].title == "model" for part in parts)
    lines = drawn(grid, width)
    assert all(cell_len(line) <= width for line in lines)


def test_columns_that_are_blank_throughout_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(("a", "b", "c"), [("1", "", "x"), ("2", "", "")], title="t", notes=["n"])
    assert capsys.readouterr().out.splitlines() == ["t", "a  c", "────", "1  x", "2", "n"]


def test_an_empty_table_is_no_crash(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("a", "b"), [])
    assert "a" not in capsys.readouterr().err


def test_a_reader_that_went_away_is_an_exception() -> None:
    with pytest.raises(BrokenPipeError):
        Output().on_broken_pipe()
