"""The checks of a run in the terminal."""

from __future__ import annotations

from recbias.api import Run
from recbias.cli.grids import print_grid
from recbias.reports.check_table import build_check_table
from recbias.reports.views.run_tables import read_run


def show_checks(run: Run) -> bool:
    """Print the table of the checks of a run; return whether one failed."""
    if (table := build_check_table(read_run(run.folder))) is not None:
        print_grid(table)
    return any(row["failed"] for row in run.checks)
