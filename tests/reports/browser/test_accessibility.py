from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from support.run_folders import RunSpec

pytestmark = pytest.mark.browser

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")

WORLD = RunSpec(
    metrics=("nDCG", "HR", "log_popularity_difference", "REC-ST(label=truth.gender)"),
    parts=(("gender=F", ""), ("gender=M", "")),
    users=20,
    failures=[{"stage": "fit X", "message": "m", "traceback": "Traceback\n  line"}],
    warnings=[f"warning {number}" for number in range(9)],
)

LIST_CONTROLS = """
() => {
  const all = document.querySelectorAll("a[href], button, input, summary, [tabindex='0']");
  window.controls = Array.from(all).filter((control) => control.checkVisibility());
  return controls.length;
}
"""
DESCRIBE_FOCUS = """
() => {
  const style = getComputedStyle(document.activeElement);
  return [controls.indexOf(document.activeElement), style.outlineStyle, style.outlineWidth];
}
"""


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the source of axe."""
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("no axe")
    return Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_no_fault(open_report: Any, axe: str, scheme: str, width: int) -> None:
    page = open_report(WORLD, color_scheme=scheme, viewport={"width": width, "height": 844})
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    page.evaluate(axe)
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    faults = page.evaluate("(options) => axe.run(document, options)", options)
    assert faults["passes"]
    assert [(fault["id"], fault["nodes"][0]["html"]) for fault in faults["violations"]] == []


def test_the_keyboard_reaches_every_control_and_shows_where_it_is(open_report: Any) -> None:
    page = open_report(WORLD)
    n_controls = page.evaluate(LIST_CONTROLS)
    reached = []
    for _ in range(n_controls):
        page.keyboard.press("Tab")
        at, style, width = page.evaluate(DESCRIBE_FOCUS)
        assert (style, width) != ("none", "0px")
        reached.append(at)
    assert reached == list(range(n_controls))
