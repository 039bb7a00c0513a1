from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.wording import Safe, clean, escape, strip_folders, tag


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>", "&lt;script&gt;"),
        ("\"quoted\" & 'so'", "&quot;quoted&quot; &amp; &#x27;so&#x27;"),
        (Safe("<b>"), "<b>"),
        (0.5, "0.5"),
        (None, "None"),
    ],
)
def test_text_is_escaped_and_markup_is_not(text: object, escaped: str) -> None:
    assert escape(text) == escaped


def test_a_tag_escapes_its_attributes_and_children() -> None:
    element = tag("td", "<i>", Safe("<b></b>"), class_="n", data_value='"', hidden=False, id=None)
    assert element == '<td class="n" data-value="&quot;">&lt;i&gt;<b></b></td>'


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_makes_well_formed_xml(text: str) -> None:
    root = ET.fromstring(tag("a", text, title=text))
    # XML turns carriage returns into line feeds, and white space in attributes into spaces.
    assert "".join(root.itertext()).split() == clean(text).split()


def test_characters_that_xml_forbids_are_replaced() -> None:
    assert clean("a\x00b\ud800c\td") == "a\ufffdb\ufffdc\td"


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("no file '/home/ann/data/x.csv'", "no file '.../x.csv'"),
        (r"in C:\Users\ann\x.csv here", "in .../x.csv here"),
        ('File "/usr/lib/recbias/models/x.py", line 3', 'File ".../x.py", line 3'),
        ("see https://example.org/a/b and a/b/c", "see https://example.org/a/b and a/b/c"),
        ("1/2 or and/or", "1/2 or and/or"),
    ],
)
def test_paths_are_reduced_to_their_last_component(text: str, stripped: str) -> None:
    assert strip_folders(text) == stripped


def test_nested_paths_are_reduced() -> None:
    manifest = {"failures": [{"traceback": "/a/b/c.py", "n": 1}]}
    assert strip_folders(manifest) == {"failures": [{"traceback": ".../c.py", "n": 1}]}
