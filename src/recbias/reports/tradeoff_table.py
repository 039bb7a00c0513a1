"""The table of what re-ranking costs in accuracy and removes in bias."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from recbias.reports.views.definitions import ACCURACY
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headings import make_heading
from recbias.reports.views.headline import select_headline, select_varying
from recbias.reports.views.rounding import count_decimals, format_interval, format_value
from recbias.reports.views.run_tables import RunTables, to_records

TITLE = "Accuracy lost for bias removed by re-ranking"
"""The title of the table."""


def select_tradeoffs(run: RunTables) -> list[dict[str, Any]]:
    """Return the headline rows of ``tradeoffs.csv`` for one metric of accuracy.

    It is nDCG if there is one, else the first of the preferred names, else the first of the file.
    """
    table = run.tradeoffs
    if table is None or table.empty:
        return []
    table = select_headline(run, table)
    titles = list(dict.fromkeys(table["accuracy"]))
    ranks = {name: rank for rank, name in enumerate(ACCURACY)}
    best = min(titles, key=lambda title: ranks.get(title.partition("@")[0], len(ranks)))
    return to_records(table[table["accuracy"] == best])


def name_reranker(row: Mapping[str, Any]) -> str:
    """Return the label of the re-ranker of a version without the setting that orders versions.

    >>> row = {"model": "EASE + FA*IR(protected=F, share=0.2)", "baseline": "EASE"}
    >>> name_reranker({**row, "setting": "share"}), name_reranker({**row, "setting": ""})
    ('FA*IR(protected=F)', 'FA*IR(protected=F, share=0.2)')
    """
    label = str(row["model"]).removeprefix(f"{row['baseline']} + ")
    name, _, settings = label.removesuffix(")").partition("(")
    if not row["setting"] or not settings:
        return label
    parts = [part for part in settings.split(", ") if not part.startswith(f"{row['setting']}=")]
    return f"{name}({', '.join(parts)})" if parts else name


def build_tradeoff_table(run: RunTables) -> Table | None:
    """Return one row for each re-ranked model and metric of bias; None without re-ranking."""
    rows = select_tradeoffs(run)
    if not rows:
        return None
    varying = select_varying(pd.DataFrame(rows), ("dataset", "target"))
    measures = ("accuracy_lost", "bias_removed", "price")
    numeric = [name.replace("_", " ") for name in measures]
    columns = ("model", "beside", *varying, "bias", *numeric)
    shares = {name: count_decimals([row[name] for row in rows]) for name in measures[:1]}
    return Table(
        TITLE,
        make_columns(columns, numeric=numeric),
        tuple(
            (
                Cell(row["model"]),
                Cell(row["baseline"]),
                *(Cell(row[name]) for name in varying),
                Cell(make_heading(row["bias"])),
                *(_build_cell(row, name, shares.get(name)) for name in measures),
            )
            for row in rows
        ),
        notes=tuple(_explain(rows)),
    )


def _build_cell(row: Mapping[str, Any], name: str, places: int | None) -> Cell:
    value, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
    digits = count_decimals([value]) if places is None else places
    interval = format_interval(low, high, digits)
    if name == "price" and is_unbounded(row):
        interval = "unbounded"
    text = format_value(value, digits)
    return Cell(f"{text} ({interval})" if interval else text, value)


def is_unbounded(row: Mapping[str, Any]) -> bool:
    """Return whether Fieller's set has no end: the bias removed may be 0."""
    holds_zero = bool(row["bias_removed_low"] <= 0 <= row["bias_removed_high"])
    is_defined = not math.isnan(row["price"]) and math.isnan(row["price_low"])
    return holds_zero and is_defined


def _explain(rows: list[dict[str, Any]]) -> list[str]:
    accuracy = make_heading(rows[0]["accuracy"])
    notes = [
        f"Accuracy lost: {accuracy} of the model beside it minus that of the re-ranked one.",
        "Bias removed: by how much the metric is nearer to its best direction, or to 0.",
        "Price: accuracy lost for one unit of bias removed.",
        "In brackets: 95% intervals of the differences by unit; Fieller's for the price.",
        "Intervals of metrics of the whole set of lists are by a bootstrap of the queries.",
    ]
    if any(math.isnan(row["price"]) for row in rows):
        notes.append("The price is undefined (n/a) where no bias is removed.")
    if any(map(is_unbounded, rows)):
        notes.append(
            "Unbounded: the bias removed is not significantly different from 0, so the price may "
            "be any number."
        )
    has_none = [not math.isnan(row["price"]) and math.isnan(row["price_low"]) for row in rows]
    if any(none and not is_unbounded(row) for none, row in zip(has_none, rows, strict=True)):
        notes.append("The price of a gap between groups has no interval.")
    return notes
