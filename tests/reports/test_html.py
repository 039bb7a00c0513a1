from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.reports.render import Content, escape_markdown, render_html
from recbias.reports.run import read_run
from recbias.reports.wording import clean, tag
from reports.browser.worlds import HOSTILE_WORLD
from support.run_folders import NINETEEN_MODELS, RunSpec, make_run

VOID = {"meta", "link", "input", "br"}


class Outline(HTMLParser):
    """The tags of a page; fails if an element is not closed in order.

    ``texts`` holds the text of every ``summary`` and ``pre``.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"summary": [], "pre": []}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.texts:
            self.texts[self.open[-1]].append(data)

    def count(self, tag: str) -> int:
        return [name for name, _ in self.tags].count(tag)


def render_page(folder: Path, world: RunSpec | None = None) -> str:
    return render_html(Content(read_run(make_run(folder, world))))


@pytest.mark.parametrize(
    "world", [None, HOSTILE_WORLD, RunSpec(models=NINETEEN_MODELS, metrics=("HR",))]
)
def test_the_page_is_well_formed(tmp_path: Path, world: RunSpec | None) -> None:
    outline = Outline(render_page(tmp_path, world))
    assert outline.open == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_page_requests_nothing(tmp_path: Path) -> None:
    text = render_page(tmp_path, HOSTILE_WORLD)
    for name, attributes in Outline(text).tags:
        assert not {"src", "srcset", "poster", "action"} & set(attributes), name
        link = attributes.get("href") or "#"
        beside = name == "a" and re.fullmatch(r"[\w./-]+", link)  # followed only by a click
        assert beside or link.startswith(("#", "data:")), name
    assert not re.search(r"url\(|@import", text)
    assert "default-src 'none'" in text


def test_the_policy_allows_only_the_script_of_the_page(tmp_path: Path) -> None:
    text = render_page(tmp_path, HOSTILE_WORLD)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_the_page_is_complete_without_javascript(tmp_path: Path) -> None:
    text = render_page(tmp_path)
    outline = Outline(text)
    assert outline.count("button") == 0  # the script adds the buttons that need it
    for expected in ("Significance", "Definitions", "Järvelin", "neighbors 100"):
        assert expected in text
    assert "Agreement of the metrics" in text
    assert outline.count("svg") == 2 + 3  # the answer twice, the overview


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


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_makes_well_formed_xml(text: str) -> None:
    root = ET.fromstring(tag("a", text, title=text))
    # XML turns carriage returns into line feeds, and white space in attributes into spaces.
    assert "".join(root.itertext()).split() == clean(text).split()
