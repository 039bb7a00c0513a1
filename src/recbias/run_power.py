"""The power of the comparisons of a finished run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from recbias.reports.views.headline import replace_groups
from recbias.reports.views.run_tables import read_run
from recbias.runner.power.power_rows import PowerQuestion, compute_power_rows
from recbias.runner.power.power_tables import PowerTables
from recbias.runs import Run, find_run


def power(
    run: Run | Path | str,
    difference: float | None = None,
    *,
    power: float = 0.8,
    alpha: float | None = None,
    out: Path | str = "results",
) -> pd.DataFrame:
    """Return the smallest difference that each comparison could have found, and the units needed.

    Args:
        run: A run, its folder, or the name of an experiment, for its latest run.
        difference: A difference in the unit of the metric; without one no units are counted.
        power: The probability with which it is to be found.
        alpha: The level before correction, by default that of the run.
        out: The folder of results in which a name is looked up.

    Returns:
        One row for each comparison, with the columns ``POWER_COLUMNS``: ``detectable`` is the
        smallest difference of this run, ``needed`` the number of units for ``difference``.

    Raises:
        UserError: The run does not exist or compares nothing, or a number is out of range.

    Example:
        recbias.power(recbias.load("quickstart"), difference=0.01)[["a", "b", "needed"]]
    """
    question = PowerQuestion(difference=difference, power=power, alpha=alpha)
    tables = read_run(run.folder if isinstance(run, Run) else find_run(run, out))
    metrics = replace_groups(tables.metrics, tables.groups)
    frames = (metrics, tables.significance, tables.per_unit, tables.manifest)
    return compute_power_rows(PowerTables(*frames, lambda: tables.lists), question)
