from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from support.run_folders import RunSpec

pytestmark = pytest.mark.browser

NUMBER = re.compile(r"(?<![\d.])-?\d+\.\d{4}(?!\d)")
METRICS = [
    *("nDCG", "HR", "MRR", "MAP", "log_popularity_difference", "Gini"),
    *(f"REC-ST(label=truth.gender {number})" for number in range(11)),
]
WIDE = RunSpec(models=("x", "y", "z"), metrics=METRICS, users=20, lists=False)

PAPER = 718
"""The width of A4 between margins of 10 mm, in CSS pixels."""


def print_page(page: Any, path: Path) -> str:
    """Return the text of all pages on paper."""
    pypdf = pytest.importorskip("pypdf")
    page.pdf(path=path, format="A4", margin=dict.fromkeys(("left", "right"), "10mm"))
    texts = [sheet.extract_text() for sheet in pypdf.PdfReader(path).pages]
    return "\n".join(texts).replace("\u2212", "-")


def test_every_number_of_a_wide_table_is_on_paper(open_report: Any, tmp_path: Path) -> None:
    text = print_page(open_report(WIDE), tmp_path / "report.pdf")
    results = text.partition("\nResults\n")[2].partition("\nGroups\n")[0]
    values = pd.read_csv(tmp_path / "metrics.csv")["value"]
    expected = Counter(f"{value:.4f}" for value in values)
    assert len(values) == 3 * 17
    assert Counter(NUMBER.findall(results)) == expected


def test_nothing_is_wider_than_the_paper(open_report: Any) -> None:
    page = open_report(WIDE, viewport={"width": PAPER, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.querySelectorAll('.part').length") > 0
    beyond = """Array.from(document.querySelectorAll('body *'))
        .filter((part) => !part.closest('svg'))
        .filter((part) => part.getBoundingClientRect().right > innerWidth + 1)
        .map((part) => part.textContent.slice(0, 60))"""
    assert page.evaluate(beyond) == []


def test_the_screen_is_as_before_after_printing(open_report: Any, tmp_path: Path) -> None:
    page = open_report(WIDE)
    count = "document.querySelectorAll('table').length"
    before = page.evaluate(count)
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate(count) == before
    assert page.evaluate("document.querySelectorAll('.divided, .part').length") == 0
