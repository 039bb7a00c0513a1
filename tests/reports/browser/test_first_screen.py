from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias

pytestmark = pytest.mark.browser

PAGES = 4
"""The most pages of A4 on which the quickstart is printed."""

SMALLEST_TEXT = """svg => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")];
  return scale * Math.min(...texts.map(text => parseFloat(getComputedStyle(text).fontSize)));
}"""


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recbias.run("quickstart", out=tmp_path_factory.mktemp("results")).folder / "report.html"


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
def test_verdict_tiles_and_chart_are_above_the_fold(
    browser: Any, quickstart: Path, width: int, height: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(quickstart.as_uri())
    verdict = page.locator(".verdict")
    line = (
        "✓ PASS: 1 of 1 check of EASE; nDCG gap by gender 0.0309 [0.0000, 0.0656], limit at most "
        "0.1; ItemKNN, PureSVD and 2 baselines not checked"
    )
    assert " ".join(verdict.inner_text().split()) == line
    assert page.locator(".tiles li.pass").count() == 1
    for part in (verdict, page.locator(".tiles"), page.locator(".answer svg:visible")):
        box = part.bounding_box()
        assert box["y"] + box["height"] <= height
        assert box["x"] + box["width"] <= width
    assert page.locator(".answer svg:visible").evaluate(SMALLEST_TEXT) >= 12
    assert page.evaluate("document.documentElement.scrollHeight") < 2.25 * height
    assert page.locator("details.section[open]").count() == 0
    page.get_by_role("link", name="Results", exact=True).click()
    page.locator("#results table").first.wait_for(state="visible")
    page.get_by_role("button", name="Open all sections").click()
    plots = page.locator("svg.fig:visible").all()
    assert len(plots) > 3
    assert min(plot.evaluate(SMALLEST_TEXT) for plot in plots) >= 11.99
    page.close()


def test_a_table_on_two_pages_has_its_header_on_both(
    browser: Any, quickstart: Path, tmp_path: Path
) -> None:
    """Chromium does not repeat a header with buttons, which sort the table on the screen."""
    pypdf = pytest.importorskip("pypdf")
    page = browser.new_page()
    page.goto(quickstart.as_uri())
    page.evaluate(
        """() => {
          const body = document.querySelector("#results tbody");
          for (let n = 0; n < 5; n++) body.append(...body.cloneNode(true).rows);
          for (const part of document.querySelectorAll(".part, .fig")) part.remove();
        }"""
    )
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    texts = [sheet.extract_text() for sheet in pypdf.PdfReader(tmp_path / "report.pdf").pages]
    assert sum("lower is better" in text for text in texts) >= 2
    assert page.locator("#results thead button").count() > 0  # as before
    page.close()


def test_the_quickstart_is_printed_on_four_pages(
    browser: Any, quickstart: Path, tmp_path: Path
) -> None:
    pypdf = pytest.importorskip("pypdf")
    page = browser.new_page()
    page.goto(quickstart.as_uri())
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    texts = [sheet.extract_text() for sheet in pypdf.PdfReader(tmp_path / "report.pdf").pages]
    assert len(texts) <= PAGES
    for expected in ("PASS: 1 of 1 check of EASE", "Results", "0.5065", "Groups"):
        assert any(expected in text for text in texts)
    assert page.locator("details.section[open]").count() == 0  # as before
    page.close()
