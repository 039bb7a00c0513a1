from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import pytest

from recbias.reports.views.comparisons import Comparisons
from recbias.reports.views.findings import Fact
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.writers.html_parts import FEW, alert, facts, html_table, negative, pairs

TABLE = Table(
    "Results <b>",
    (Column("model"), Column("gap", numeric=True, direction="zero", note='a "note"')),
    (
        (Cell("<i>", mark="a"), Cell("-0.2000", -0.2, note="n 4", interval="-0.3 to -0.1")),
        (Cell("y", mark="b"), Cell("0.1000", 0.1, best=True, mark="a")),
        (Cell("z", mark="c"), Cell("n/a")),
    ),
    ("A note & more",),
)


def parsed(drawn: str) -> ET.Element:
    return ET.fromstring(f"<root>{drawn}</root>")


def test_a_table_has_heads_for_rows_and_columns() -> None:
    root = parsed(html_table(TABLE))
    assert [each.get("scope") for each in root.iter("th")] == ["col", "col", "row", "row", "row"]
    assert ["".join(each.itertext()) for each in root.iter("th")][:3] == [
        *("model", "gapnearer to 0 is better", "<i>a"),
    ]


def test_figures_carry_the_value_that_they_sort_by() -> None:
    cells = list(parsed(html_table(TABLE)).iter("td"))
    assert [each.get("data-value") for each in cells] == ["0.2", "0.1", "nan"]
    assert [each.get("class") for each in cells] == ["n", "n best", "n"]
    assert cells[0].get("title") == "n 4"


def test_figures_have_true_minus_signs_and_their_interval() -> None:
    cell = next(parsed(html_table(TABLE)).iter("td"))
    assert "".join(cell.itertext()) == "−0.2000−0.3 to −0.1"


def test_room_is_kept_for_the_longest_mark() -> None:
    assert 'style="--marks:1"' in html_table(TABLE)


def test_the_box_scrolls_by_keyboard_and_has_a_name() -> None:
    box = parsed(html_table(TABLE, tall=True)).find("div")
    assert box is not None
    assert box.attrib == {
        "class": "box tall",
        "tabindex": "0",
        "role": "region",
        "aria-label": "Results <b>",
    }


@pytest.mark.parametrize(
    ("said", "shown"),
    [("-0.5", "−0.5"), ("-1 to -2", "−1 to −2"), ("ml-1m (-0.1)", "ml-1m (−0.1)")],
)
def test_only_figures_get_a_minus_sign(said: str, shown: str) -> None:
    assert negative(said) == shown


def test_facts_are_names_and_values() -> None:
    root = parsed(facts([Fact("<k>", "two\nlines")]))
    assert [each.text for each in (*root.iter("dt"), *root.iter("dd"))] == ["<k>", "two lines"]


@pytest.mark.parametrize(("n", "folded"), [(0, 0), (FEW, 0), (FEW + 3, 3)])
def test_many_alerts_are_folded_behind_the_first(n: int, folded: int) -> None:
    drawn = alert("warned", f"{n} warnings", [f"w{each}" for each in range(n)])
    root = parsed(drawn)
    assert len(list(root.iter("li"))) == n
    assert len(root.findall(".//details//li")) == folded


def test_comparisons_have_a_row_each_and_pale_ones_are_marked() -> None:
    row = {
        "model": "",
        "a": "<x>",
        "b": "y",
        "difference": -0.1,
        "ci_low": math.nan,
        "ci_high": math.nan,
        "statistic": -2.0,
        "p": 0.01,
        "p_adjusted": 0.21,
        "effect_size": math.nan,
        "significant": "False",
    }
    found = Comparisons("HR", "higher", ("d", "1", "1"), "t", "models", "", (row,))
    root = parsed(pairs(found))
    line = root.findall(".//tbody/tr")[0]
    assert line.get("class") == "unsure"
    assert ["".join(each.itertext()) for each in line] == [
        *("<x>", "y", "−0.1000", "", "−2.00", "0.01", "0.21", "n/a", "no"),
    ]
