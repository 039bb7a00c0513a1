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

Piece = tuple[float, float, str]
"""The x of a piece of text, its font size in points, and the text."""

CHARACTER = 0.45
"""The least width of a digit or letter, in font sizes."""


def print_page(page: Any, path: Path) -> tuple[list[str], list[Piece], float]:
    """Return the text of each page on paper, the pieces of text, and the width in points."""
    pypdf = pytest.importorskip("pypdf")
    page.pdf(path=path, format="A4", margin=dict.fromkeys(("left", "right"), "10mm"))
    pieces: list[Piece] = []

    def collect(text: str, cm: list[float], tm: list[float], _: Any, size: float) -> None:
        if text.strip():
            x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
            pieces.append((x, size * abs(tm[0] * cm[0]), text.strip()))

    pages = pypdf.PdfReader(path).pages
    texts = [sheet.extract_text(visitor_text=collect).replace("−", "-") for sheet in pages]
    return texts, pieces, float(pages[0].mediabox.width)


def test_every_number_of_a_wide_table_is_on_paper(open_report: Any, tmp_path: Path) -> None:
    texts, pieces, width = print_page(open_report(WIDE), tmp_path / "report.pdf")
    results = "\n".join(texts).partition("\nResults\n")[2].partition("\nPlots\n")[0]
    values = pd.read_csv(tmp_path / "metrics.csv")["value"]
    expected = Counter(f"{value:.4f}" for value in values)
    assert len(values) == 3 * 17
    assert Counter(NUMBER.findall(results)) == expected
    margin = 10 / 25.4 * 72
    beyond = [
        text
        for x, size, text in pieces
        if x < margin - 1 or x + CHARACTER * size * len(text) > width - margin + 1
    ]
    assert beyond == []


def test_the_screen_is_as_before_after_printing(open_report: Any, tmp_path: Path) -> None:
    page = open_report(WIDE)
    count = "document.querySelectorAll('table').length"
    before = page.evaluate(count)
    page.pdf(path=tmp_path / "report.pdf")
    assert page.evaluate(count) == before
    assert page.evaluate("document.querySelectorAll('.divided, .part').length") == 0
