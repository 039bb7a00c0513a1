from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recbias
from recbias.reports.environments import escape_markdown
from recbias.reports.render import Content, render_html
from recbias.reports.run import read_run
from recbias.reports.wording import clean, tag
from support.browsing import CHROMIUM, FLAGS
from support.chat.chat_server import Answer, make_reply, serve_chat
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run
from support.specs import make_small_spec

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


HOSTILE_WORLD = RunSpec(
    models=HOSTILE,
    datasets=("<b>x</b>", 'y" onload="alert(1)'),
    users=30,
    parts=(("race=<i>", "price=$$"),),
    failures=[{"stage": "fit <X>", "message": "</style><script>alert(1)</script>", "help": "'\""}],
    warnings=["<img src=x onerror=alert(1)>"] * 2 + [f"warning {number}" for number in range(9)],
)


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


PROBE = """
addEventListener("error", (event) => probe.errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => probe.errors.push(event.blockedURI));
const probe = { errors: [] };
addEventListener("load", () => {
  const readColumn = (table, at) =>
    Array.from(table.tBodies[0].rows, (row) => row.cells[at].firstChild.textContent);
  const countVisible = (pairs) => Array.from(pairs.querySelectorAll("tbody tr"))
    .filter((row) => row.offsetParent !== null).length;
  for (const section of document.querySelectorAll("details")) section.open = true;
  probe.width = innerWidth;
  probe.scrolls = document.scrollingElement.scrollWidth;
  const table = document.querySelector("table.sortable");
  const head = table.tHead.rows[0].cells[1];
  const button = head.querySelector("button");
  probe.orders = [];
  for (let time = 0; time < 3; time += 1) {
    if (time) button.click();
    probe.orders.push([head.getAttribute("aria-sort"), readColumn(table, 1)]);
  }
  table.tHead.rows[0].cells[0].querySelector("button").click();
  probe.names = readColumn(table, 0);
  button.focus();
  probe.focused = document.activeElement === button;
  const pairs = document.querySelector(".pairs");
  if (pairs) {
    probe.pairs = [countVisible(pairs)];
    const input = pairs.querySelector("input[type=search]");
    input.value = "easE";
    input.dispatchEvent(new Event("input"));
    probe.pairs.push(countVisible(pairs));
    input.value = "";
    input.dispatchEvent(new Event("input"));
    pairs.querySelector(".only-significant").click();
    probe.pairs.push(countVisible(pairs));
  }
  const interval = document.querySelector(".results .interval");
  probe.intervals = [interval && interval.offsetParent !== null];
  document.querySelector(".show-intervals").click();
  probe.intervals.push(interval && interval.offsetParent !== null);
  probe.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  parent.postMessage(JSON.stringify(probe), "*");
});
"""

FRAME = """<!DOCTYPE html><body><pre></pre><script>
addEventListener("message", (event) => {
  document.querySelector("pre").textContent = event.data;
});
</script><iframe src="probed.html" style="width:390px;height:844px;border:0"></iframe></body>"""

DUMP = ("--headless", "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom")


def browse(
    folder: Path, world: RunSpec | None = None, *, width: int = 390, media: str = "screen"
) -> tuple[dict[str, Any], str]:
    """Return the results of the probe in a window of some pixels, and the log of Chromium."""
    text = render_page(folder, world).replace(f"@media {media}", "@media screen")
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    text = text.replace("<title>", f"<script>{PROBE}</script><title>", 1)
    (folder / "probed.html").write_text(text, encoding="utf-8")
    frame = FRAME.replace("width:390px", f"width:{width}px")
    (folder / "frame.html").write_text(frame, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'chromium'}"
    command = [str(CHROMIUM), *FLAGS, *DUMP, profile, (folder / "frame.html").as_uri()]
    process = subprocess.run(command, capture_output=True, timeout=60, check=True)
    document = process.stdout.decode()
    match = re.search(r"<pre>(.*?)</pre>", document, re.DOTALL)
    assert match, document[:500]
    results: dict[str, Any] = json.loads(html.unescape(match[1]))
    return results, process.stderr.decode(errors="replace")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize(
    "world",
    [RunSpec(), HOSTILE_WORLD, RunSpec(models=NINETEEN_MODELS)],
    ids=["seven", "hostile", "nineteen"],
)
def test_a_phone_shows_the_page_without_errors_requests_or_horizontal_scrolling(
    tmp_path: Path, world: RunSpec
) -> None:
    results, log = browse(tmp_path, world)
    assert results["errors"] == []
    assert results["requests"] == []
    assert results["width"] == 390
    assert results["scrolls"] <= 390  # 375 beside a scroll bar
    assert "CONSOLE" not in log


def parse_values(texts: list[str]) -> list[float]:
    return [float(text.replace("−", "-")) for text in texts]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_tables_can_be_sorted_and_comparisons_filtered(tmp_path: Path) -> None:
    results, _ = browse(tmp_path)
    (unsorted, original), (first, falling), (second, rising) = results["orders"]
    assert (unsorted, first, second) == (None, "descending", "ascending")  # the best comes first
    assert sorted(original) == sorted(falling)
    assert falling == rising[::-1]
    assert parse_values(falling) == sorted(parse_values(falling), reverse=True)
    assert results["names"][0].startswith("ALS")
    assert results["focused"]
    assert results["pairs"][:2] == [84, 24]  # all pairs on four metrics, and those of EASE
    assert 0 < results["pairs"][2] < 84
    assert results["intervals"] == [False, True]


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


HOSTILE_TITLE = "<img>No|Such</img> \x1b[2J\ud800 Film"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run whose every third reply is a refusal."""
    n_sent = 0

    def answer(payload: object) -> Answer:
        nonlocal n_sent
        n_sent += 1
        if n_sent % 3 == 0:
            return Answer(make_reply("", "content_filter"))
        return Answer(make_reply(f"1. {HOSTILE_TITLE} (1990)\n2. Nor This One (1991)"))

    with serve_chat(answer) as server:
        llm = {"model": "small", "base_url": server.base_url, "concurrency": 1}
        spec = make_small_spec(
            models=["MostPop", {"name": "WOK", "llm": llm}],
            report={"formats": ["md", "html", "json"]},
        )
        return recbias.run(spec, out=tmp_path_factory.mktemp("replies")).folder


def test_markdown_has_the_outcomes_and_the_unmatched_titles(reports: Path) -> None:
    text = (reports / "report.md").read_text(encoding="utf-8")
    section = text[text.index("## Replies of language models") : text.index("## Plots")]
    # 60 users: 40 complete replies and 20 refusals, each of 10 tokens in and 5 out.
    assert "| WOK | 60 | 40 | 0 | 20 | 0 | 0 | 0 | 600 | 300 |" in section
    assert "| WOK | Nor This One (1991) | unknown | 40 |" in section
    assert r"&lt;img&gt;No\|Such&lt;/img&gt; \\x1b\[2J" in section


def test_html_has_a_section_of_replies_with_escaped_titles(reports: Path) -> None:
    page = (reports / "report.html").read_text(encoding="utf-8")
    section = page[page.index('id="replies"') : page.index('id="plots"')]
    assert "Nor This One (1991)" in section
    assert "&lt;img&gt;No|Such&lt;/img&gt; \\x1b[2J" in section
    assert "<b>" not in section
    assert '<a href="#replies">' in page
