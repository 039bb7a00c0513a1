"""The results of several runs in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.wide_tables import build_summary


def build_runs_table(runs: Mapping[str, RunTables]) -> Table:
    """Return one row per run, dataset and model, and one column per metric of any run.

    Args:
        runs: The runs by their labels. A dataset has a column if a run has several.
    """
    summaries = {label: build_summary(run) for label, run in runs.items()}
    columns: dict[str, Column] = {}
    for table in summaries.values():
        columns |= {
            column.title: column for column in table.columns if column.title not in columns
        }
    titles = sorted(title for title, column in columns.items() if not column.numeric)
    titles += [title for title, column in columns.items() if column.numeric]
    rows = []
    for label, table in summaries.items():
        for row in table.rows:
            cells = {
                column.title: replace(cell, best=False, mark="")
                for column, cell in zip(table.columns, row, strict=True)
            }
            rows.append((Cell(label), *(cells.get(title, Cell("")) for title in titles)))
    return Table("Results", (Column("run"), *(columns[title] for title in titles)), tuple(rows))
