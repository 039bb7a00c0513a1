from __future__ import annotations

from typing import Any

import pytest

from reports.browser.worlds import HOSTILE_WORLD
from support.run_folders import NINETEEN_MODELS, RunSpec

pytestmark = pytest.mark.browser

READ_COLUMN = """
(table, at) => Array.from(table.tBodies[0].rows, (row) => row.cells[at].firstChild.textContent)
"""
OPEN = "for (const part of document.querySelectorAll('details')) part.open = true"


@pytest.mark.parametrize("world", [RunSpec(), HOSTILE_WORLD, RunSpec(models=NINETEEN_MODELS)])
def test_a_phone_shows_the_page_without_horizontal_scrolling(
    open_report: Any, world: RunSpec
) -> None:
    page = open_report(world, viewport={"width": 390, "height": 844})
    page.evaluate(OPEN)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390


def test_tables_can_be_sorted_and_comparisons_filtered(open_report: Any) -> None:
    page = open_report()
    page.evaluate(OPEN)
    table = page.locator("table.sortable").first
    button = table.locator("thead th").nth(1).locator("button")

    def read(at: int) -> list[str]:
        column: list[str] = table.evaluate(f"table => ({READ_COLUMN})(table, {at})")
        return column

    button.click()  # the best comes first
    falling = [float(text.replace("−", "-")) for text in read(1)]
    assert falling == sorted(falling, reverse=True)
    button.click()
    assert [float(text.replace("−", "-")) for text in read(1)] == falling[::-1]
    table.locator("thead th").first.locator("button").click()
    assert read(0)[0].startswith("ALS")

    pairs = page.locator(".pairs")
    rows = pairs.locator("tbody tr:visible")
    assert rows.count() == 84  # all pairs on four metrics
    pairs.locator("input[type=search]").fill("easE")
    assert rows.count() == 24
    pairs.locator("input[type=search]").fill("")
    pairs.locator(".only-significant").click()
    assert 0 < rows.count() < 84

    interval = page.locator(".results .interval").first
    assert not interval.is_visible()
    page.locator(".show-intervals").click()
    assert interval.is_visible()
