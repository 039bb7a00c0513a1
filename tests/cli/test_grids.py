from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from recbias.cli.output import (
    fit_to_width,
    fold_text,
    print_grid,
)
from recbias.reports.wording import Cell, Column, Table

RESULTS = Table(
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


def render(grid: Table, width: int, *, terminal: bool = True) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    print_grid(grid, console)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_wide_terminal_aligns_values_and_marks() -> None:
    assert render(RESULTS, 100) == [
        "Results",
        "model       nDCG@10  log_popularity_difference@10",
        "─────────────────────────────────────────────────",
        "Random  a  0.0348                       -0.4086 b",
        "MostPop b  0.1711 a                      0.8462",
        "Bold: the best of the column.",
    ]


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    "text", ["[red]x[/red]", "[/]", "[link=https://x]y", "\\[b]", ":smile:", "{0} %s $HOME"]
)
def test_markup_in_a_cell_is_not_interpreted(text: str, terminal: bool) -> None:
    grid = Table(text, (Column(text),), ((Cell(text, mark="a"),),), (text,))
    lines = render(grid, 80, terminal=terminal)
    assert [line for line in lines if "─" not in line] == [text, text, f"{text} a", text]


def test_control_characters_in_a_cell_are_escaped() -> None:
    grid = Table("t", (Column("c"),), ((Cell("a\x1b[2Jb\rc\nd"),),))
    assert render(grid, 80)[-1] == r"a\x1b[2Jb\rc\nd"


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
def test_text_is_folded_at_separators(text: str, limit: int, lines: list[str]) -> None:
    assert fold_text(text, limit).split("\n") == lines


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
    parts = fit_to_width(grid, width)
    assert sum(len(part.columns) - 1 for part in parts) == len(titles) or not titles
    assert all(part.columns[0].title == "model" for part in parts)
    lines = render(grid, width)
    assert all(cell_len(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("width", "head", "names"),
    [(27, "model a b c", ""), (26, "model a c", "b"), (15, "model c", "a; b")],
)
def test_optional_columns_are_left_out_of_a_narrow_terminal(
    width: int, head: str, names: str
) -> None:
    # 6 + 2 + 5 + 2 + 5 + 2 + 5 characters are 27; without b and a they are 13
    columns = (Column("model"), *(Column(name, numeric=True) for name in ("a", "b", "c")))
    grid = Table("t", columns, ((Cell("Random"), Cell("1.000"), Cell("2.000"), Cell("3.000")),))

    def print_text(*optional: str) -> str:
        stream = io.StringIO()
        console = Console(file=stream, width=width, force_terminal=True, color_system=None)
        print_grid(grid, console, optional=optional, elsewhere="the file has them")
        return " ".join(stream.getvalue().split())

    text = print_text("b", "a")
    assert text.startswith(f"t {head} ─")
    note = text.rpartition(" 3.000")[2].strip()
    assert note == (f"Too wide to show: {names} (the file has them)." if names else "")
    if width == 15:
        assert print_text("b").endswith("3.000"), "too narrow without b too, so it is split"
