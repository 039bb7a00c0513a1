from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.environments import escape_markdown, load_environment
from recbias.reports.wording import clean


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_in_a_template_makes_well_formed_xml(text: str) -> None:
    template = load_environment("html").from_string('<a title="{{ text }}">{{ text }}</a>')
    root = ET.fromstring(template.render(text=text))
    assert "".join(root.itertext()) == root.get("title") == " ".join(clean(text).split())


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
