from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.wording import clean, strip_folders, tag


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_makes_well_formed_xml(text: str) -> None:
    root = ET.fromstring(tag("a", text, title=text))
    # XML turns carriage returns into line feeds, and white space in attributes into spaces.
    assert "".join(root.itertext()).split() == clean(text).split()


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
