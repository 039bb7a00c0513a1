"""The comparison with a published table, for display."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import to_records


def build_reference_table(frame: pd.DataFrame, remarks: Sequence[str]) -> Table:
    """Return the rows of ``reference.csv`` as a table."""
    records = to_records(frame)
    numbers = ("published", "measured", "difference")
    places = count_decimals(row[name] for row in records for name in numbers)
    rows = tuple(
        (
            *(Cell(row["system"]), Cell(row["metric"])),
            *(Cell(format_value(row[name], places), row[name]) for name in numbers),
            Cell("yes" if row["within"] else "no"),
        )
        for row in records
    )
    columns = (
        *(Column("system"), Column("metric")),
        *(Column(name, numeric=True) for name in numbers),
        Column("within"),
    )
    name = str(frame["table"].iloc[0]) if len(frame) else "a published table"
    notes = remarks if rows else ["It has no model and metric of this run.", *remarks]
    return Table(f"Comparison with {name}", columns, rows, tuple(notes))
