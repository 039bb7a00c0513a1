"""The table of the checks of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from recbias.reports.views.definitions import format_title
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headings import make_heading
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables

_PLACE = ("dataset", "group", "target")

TITLE = "Checks"
"""The title of the table."""


def build_check_table(run: RunTables) -> Table | None:
    """Return one row for each check, model and value, failed checks first; None without checks."""
    rows = [*run.manifest.get("checks", [])]
    if not rows:
        return None
    rows.sort(key=lambda row: (not row["failed"], row["verdict"] != "undecided"))
    varying = [name for name in _PLACE if len({row[name] for row in rows}) > 1]
    titles = ("model", "metric", *varying, "value", "95% interval", "line", "verdict")
    return Table(
        TITLE,
        make_columns(titles, numeric=("value", "95% interval")),
        tuple(_build_cells(row, varying) for row in rows),
        notes=tuple(_explain(rows)),
    )


def _build_cells(row: Mapping[str, Any], varying: list[str]) -> tuple[Cell, ...]:
    value, low, high = (
        math.nan if row[name] is None else row[name] for name in ("value", "ci_low", "ci_high")
    )
    places = count_decimals([value, low, high])
    ends = [format_value(end, places) for end in (low, high)]
    k = math.nan if row["k"] is None else float(row["k"])
    metric = make_heading(format_title(row["metric"], k))
    texts = (row["model"], metric, *(row[name] for name in varying))
    verdict = f"{row['verdict']} (strict)" if _is_strict_failure(row) else row["verdict"]
    return (
        *map(Cell, texts),
        Cell(format_value(value, places), value),
        Cell("none" if math.isnan(low) else f"{ends[0]} to {ends[1]}", low),
        Cell(row["line"]),
        Cell(verdict, best=row["failed"]),
    )


def _is_strict_failure(row: Mapping[str, Any]) -> bool:
    return bool(row["failed"]) and row["verdict"] == "undecided"


def _explain(rows: list[Mapping[str, Any]]) -> list[str]:
    n_failed = sum(row["failed"] for row in rows)
    undecided = sum(row["verdict"] == "undecided" and not row["failed"] for row in rows)
    notes = [f"{n_failed:,} of {len(rows):,} failed, {undecided:,} undecided."]
    if any(row["baseline"] for row in rows):
        notes.append("Below or above a model: the value is the difference from that model.")
    if any(row["verdict"] == "undecided" for row in rows):
        notes.append("Undecided: the interval contains the limit, or the value is undefined.")
    if any(row["basis"] == "value" for row in rows):
        notes.append("Without an interval the value itself decides.")
    return notes
