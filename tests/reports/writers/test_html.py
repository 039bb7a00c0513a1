from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.content import Content
from recbias.reports.writers.html import html_report
from support.run_folders import HOSTILE, NINETEEN_MODELS, RunSpec, make_run
from support.search_rows import write_search_run

VOID = {"meta", "link", "input", "br"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Outline(HTMLParser):
    """The tags of a page, and whether each is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(folder: Path, world: RunSpec | None = None) -> str:
    return html_report(Content(read_run(make_run(folder, world))))


HOSTILE_WORLD = RunSpec(
    models=HOSTILE,
    datasets=("<b>x</b>", 'y" onload="alert(1)'),
    users=30,
    parts=(("race=<i>", "price=$$"),),
    failures=[{"stage": "fit <X>", "message": "</style><script>alert(1)</script>", "help": "'\""}],
    warnings=["<img src=x onerror=alert(1)>"] * 2 + [f"warning {each}" for each in range(9)],
)


@pytest.mark.parametrize(
    "world", [None, HOSTILE_WORLD, RunSpec(models=NINETEEN_MODELS, metrics=("HR",))]
)
def test_the_page_is_well_formed(tmp_path: Path, world: RunSpec | None) -> None:
    outline = Outline(page(tmp_path, world))
    assert outline.open == []
    ids = [attrs["id"] for _, attrs in outline.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_page_asks_for_nothing_from_outside(tmp_path: Path) -> None:
    text = page(tmp_path, HOSTILE_WORLD)
    for tag, attrs in Outline(text).tags:
        assert not {"src", "srcset", "poster", "action"} & set(attrs), tag
        assert (attrs.get("href") or "#").startswith(("#", "data:")), tag
    assert not re.search(r"url\(|@import", text)
    assert "default-src 'none'" in text


def test_the_policy_lets_only_the_pages_own_script_run(tmp_path: Path) -> None:
    text = page(tmp_path, HOSTILE_WORLD)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_labels_are_text_and_never_markup(tmp_path: Path) -> None:
    tags = Outline(page(tmp_path, HOSTILE_WORLD)).tags
    assert not [tag for tag, _ in tags if tag in {"img", "b", "i"}]
    assert not [attrs for _, attrs in tags if any(key.startswith("on") for key in attrs)]
    assert [tag for tag, _ in tags].count("script") == 1


def test_failures_and_warnings_stand_before_the_results(tmp_path: Path) -> None:
    text = page(tmp_path, HOSTILE_WORLD)
    assert text.index("1 failure") < text.index("10 warnings") < text.index('id="results"')


def test_it_is_whole_without_javascript(tmp_path: Path) -> None:
    text = page(tmp_path)
    tags = [tag for tag, _ in Outline(text).tags]
    assert "button" not in tags  # nothing that would do nothing
    for said in ("Significance", "Definitions", "Järvelin", "neighbors 100"):
        assert said in text
    assert tags.count("svg") == 4 + 4


def test_a_run_without_tests_has_no_significance(tmp_path: Path) -> None:
    text = page(tmp_path, RunSpec(significance=False))
    assert 'href="#significance"' not in text
    assert 'id="significance"' not in text


PROBE = """
addEventListener("error", (event) => probe.errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => probe.errors.push(event.blockedURI));
const probe = { errors: [] };
addEventListener("load", () => {
  const column = (table, at) =>
    Array.from(table.tBodies[0].rows, (row) => row.cells[at].textContent);
  const visible = (part) => Array.from(part.querySelectorAll("tbody tr"))
    .filter((row) => row.offsetParent !== null).length;
  for (const each of document.querySelectorAll("details")) each.open = true;
  probe.width = innerWidth;
  probe.scrolls = document.scrollingElement.scrollWidth;
  const table = document.querySelector("table.sortable");
  const head = table.tHead.rows[0].cells[1];
  const button = head.querySelector("button");
  probe.orders = [];
  for (let time = 0; time < 3; time += 1) {
    if (time) button.click();
    probe.orders.push([head.getAttribute("aria-sort"), column(table, 1)]);
  }
  table.tHead.rows[0].cells[0].querySelector("button").click();
  probe.names = column(table, 0);
  button.focus();
  probe.focused = document.activeElement === button;
  const part = document.querySelector(".pairs");
  if (part) {
    probe.pairs = [visible(part)];
    const input = part.querySelector("input[type=search]");
    input.value = "easE";
    input.dispatchEvent(new Event("input"));
    probe.pairs.push(visible(part));
    input.value = "";
    input.dispatchEvent(new Event("input"));
    part.querySelector(".only-significant").click();
    probe.pairs.push(visible(part));
  }
  const interval = document.querySelector(".results .interval");
  probe.intervals = [interval && interval.offsetParent !== null];
  document.querySelector(".show-intervals").click();
  probe.intervals.push(interval && interval.offsetParent !== null);
  probe.requests = performance.getEntriesByType("resource").map((each) => each.name);
  parent.postMessage(JSON.stringify(probe), "*");
});
"""

FRAME = """<!DOCTYPE html><body><pre></pre><script>
addEventListener("message", (event) => {
  document.querySelector("pre").textContent = event.data;
});
</script><iframe src="probed.html" style="width:390px;height:844px;border:0"></iframe></body>"""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"),
)


def browsed(folder: Path, world: RunSpec | None = None) -> tuple[dict[str, Any], str]:
    """Return what the probe saw in a window of 390 pixels, and what Chromium said."""
    text = page(folder, world)
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    text = text.replace("<title>", f"<script>{PROBE}</script><title>", 1)
    (folder / "probed.html").write_text(text, encoding="utf-8")
    (folder / "frame.html").write_text(FRAME, encoding="utf-8")
    user = f"--user-data-dir={folder / 'chromium'}"
    command = [str(CHROMIUM), *FLAGS, user, (folder / "frame.html").as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    dumped = done.stdout.decode()
    found = re.search(r"<pre>(.*?)</pre>", dumped, re.DOTALL)
    assert found, dumped[:500]
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen, done.stderr.decode(errors="replace")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize(
    "world",
    [RunSpec(), HOSTILE_WORLD, RunSpec(models=NINETEEN_MODELS)],
    ids=["seven", "hostile", "nineteen"],
)
def test_a_phone_shows_it_without_errors_requests_or_sideways_scrolling(
    tmp_path: Path, world: RunSpec
) -> None:
    seen, log = browsed(tmp_path, world)
    assert seen["errors"] == []
    assert seen["requests"] == []
    assert seen["width"] == 390
    assert seen["scrolls"] <= 390  # 375 where a scroll bar stands beside it
    assert "CONSOLE" not in log


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_tables_are_sorted_and_comparisons_filtered(tmp_path: Path) -> None:
    seen, _ = browsed(tmp_path)
    (none, given), (first, falling), (second, rising) = seen["orders"]
    assert (none, first, second) == (None, "descending", "ascending")  # the best comes first

    def figures(texts: list[str]) -> list[float]:
        return [float(re.match(r"[\d.]+", each.replace("−", ""))[0]) for each in texts]  # type: ignore[index]

    assert sorted(given) == sorted(falling)
    assert falling == rising[::-1]
    assert figures(falling[:-1]) == sorted(figures(falling[:-1]), reverse=True)
    assert seen["names"][0].startswith("ALS")
    assert seen["focused"]
    assert seen["pairs"][:2] == [21, 6]  # all pairs, and those of EASE
    assert 0 < seen["pairs"][2] < 21
    assert seen["intervals"] == [False, True]


def test_searches_have_a_section_where_there_are_any(tmp_path: Path) -> None:
    text = html_report(Content(write_search_run(tmp_path / "with")))
    assert 'href="#searches"' in text
    assert Outline(text).open == []
    assert "searches" not in page(tmp_path / "without")
