from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.environments import escape_markdown, load_environment
from recbias.reports.wording import Cell, Column, Safe, Table, clean

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


def render_macro(name: str, *arguments: Any, **options: Any) -> ET.Element:
    """Return what a macro of the HTML templates renders, parsed."""
    parts: Any = load_environment("html").get_template("parts.html.jinja").module
    return ET.fromstring(f"<root>{getattr(parts, name)(*arguments, **options)}</root>")


def join_text(elements: Sequence[ET.Element] | ET.Element) -> list[str]:
    return ["".join(element.itertext()) for element in elements]


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_in_a_template_makes_well_formed_xml(text: str) -> None:
    template = load_environment("html").from_string('<a title="{{ text }}">{{ text }}</a>')
    root = ET.fromstring(template.render(text=text))
    assert "".join(root.itertext()) == root.get("title") == " ".join(clean(text).split())


@pytest.mark.parametrize(
    ("kind", "escaped"), [("html", "&lt;b&gt;*x* y"), ("md", r"&lt;b&gt;\*x\* y")]
)
def test_text_is_escaped_for_its_format_and_markup_is_not(kind: str, escaped: str) -> None:
    template = load_environment(kind).from_string("{{ text }}{{ markup }}")
    assert template.render(text="<b>*x*\n y", markup=Safe("<br>")) == f"{escaped}<br>"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", r"a\|b"),
        ("<script>", "&lt;script&gt;"),
        ("*x* _y_ `z`", r"\*x\* \_y\_ \`z\`"),
        ("[a](b)", r"\[a\](b)"),
        ("$x$", r"\$x\$"),
        ("two\nlines", "two lines"),
        ("AT&T", "AT&amp;T"),
    ],
)
def test_markdown_and_html_are_escaped_in_markdown(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


def test_a_table_has_headers_for_rows_and_columns() -> None:
    headers = list(render_macro("table", TABLE).iter("th"))
    assert [header.get("scope") for header in headers] == ["col", "col", "row", "row", "row"]
    assert join_text(headers)[:3] == ["model", "gapnearer to 0 is better", "<i>a"]
    assert headers[1].get("title") == 'a "note"'


def test_values_carry_the_number_that_they_are_sorted_by() -> None:
    cells = list(render_macro("table", TABLE).iter("td"))
    assert [cell.get("data-value") for cell in cells] == ["0.2", "0.1", "nan"]
    assert [cell.get("class") for cell in cells] == ["n", "n best", "n"]
    assert cells[0].get("title") == "n 4"


def test_values_have_minus_signs_and_their_interval() -> None:
    cells = list(render_macro("table", TABLE).iter("td"))
    assert join_text(cells)[0] == "−0.2000−0.3 to −0.1"


def test_the_box_of_a_table_is_scrollable_by_keyboard_and_labelled() -> None:
    box = render_macro("table", TABLE, tall=True).find("div")
    assert box is not None
    assert box.attrib == {
        "class": "box tall",
        "tabindex": "0",
        "role": "region",
        "aria-label": "Results <b>",
    }


def test_rows_that_are_not_significant_are_dimmed() -> None:
    rows = tuple((Cell(verdict), Cell("1", 1.0), Cell(verdict)) for verdict in ("yes", "no"))
    columns = (Column("a"), Column("p", numeric=True), Column("significant"))
    root = render_macro("table", Table("t", columns, rows), dim="no")
    assert [row.get("class") for row in root.findall(".//tbody/tr")] == [None, "dim"]


@pytest.mark.parametrize(("n", "folded"), [(0, 0), (6, 0), (9, 3)])
def test_many_alerts_are_folded_after_the_sixth(n: int, folded: int) -> None:
    root = render_macro("alert", "warned", "warning", [f"w{number}" for number in range(n)])
    assert len(list(root.iter("li"))) == n
    assert len(root.findall(".//details//li")) == folded
