"""Files inside a page: each is a link whose address holds the content, so it needs no request."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from dataclasses import dataclass

from recbias.reports.views.grid import Cell, Table
from recbias.reports.views.rounding import UNDEFINED
from recbias.reports.writers.latex import render_latex


@dataclass(frozen=True)
class Download:
    """A link that saves a file; ``label`` names the format, and ``subject`` what it holds."""

    label: str
    subject: str
    name: str
    address: str


def list_downloads(table: Table) -> list[Download]:
    """Return a table as CSV and as LaTeX."""
    stem = re.sub(r"[^a-z0-9]+", "-", table.title.lower()).strip("-")[:60] or "table"
    return [
        make_download("CSV", table.title, f"{stem}.csv", render_csv(table)),
        make_download("LaTeX", table.title, f"{stem}.tex", render_latex(table)),
    ]


def make_download(label: str, subject: str, name: str, text: str) -> Download:
    """Return a link to a text."""
    content = base64.b64encode(text.encode("utf-8", errors="backslashreplace")).decode()
    return Download(label, subject, name, f"data:text/plain;charset=utf-8;base64,{content}")


def render_csv(table: Table) -> str:
    """Return a table as CSV: numbers unrounded, undefined ones as empty cells, marks left out."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.title for column in table.columns)
    writer.writerows(map(_write_cell, row) for row in table.rows)
    return stream.getvalue()


def _write_cell(cell: Cell) -> str:
    """Return the value of a cell; an interval, which is sorted by its lower end, stays text."""
    if math.isnan(cell.value) or " to " in cell.text:
        return "" if cell.text == UNDEFINED else cell.text
    return f"{cell.value:.15g}"
