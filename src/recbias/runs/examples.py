"""The users, prompts or sentences that a metric is worst for, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from recbias.reports.examples import EXAMPLE_COLUMNS, select_examples
from recbias.reports.run import read_run
from recbias.runs.tables import Run, load


def examples(
    run: Run | Path | str,
    *,
    metric: str | None = None,
    group: str = "",
    worst: int = 10,
    models: Sequence[str] = (),
    out: Path | str = "results",
) -> pd.DataFrame:
    """Return the users, prompts or sentences for which a metric is worst, with their lists.

    Only the first dataset, seed and fold of a run are read. Histories and test items come from the
    stored stages of the run; where these are gone, they are empty, with a warning.

    Args:
        run: A run, a run folder, or the name of an experiment.
        metric: A metric with a value for each unit, such as ``nDCG`` or ``nDCG@5``; by default the
            first of the run. Of one that is best at 0, or has no better and worse, the values that
            are farthest from 0 are the worst.
        group: Only units with these labels: ``gender=F``, ``gender=F&age=25``.
        worst: The number of units.
        models: The models whose lists are shown; the first one selects the units. By default the
            two with the best means.
        out: The folder in which experiments are looked up by name.

    Returns:
        A row for each unit and model, with ``EXAMPLE_COLUMNS``. ``history`` (the latest item
        first), ``list`` and ``missed`` (test items that are not in the list) are tuples of titles,
        or of ids where the items have no titles.

    Raises:
        MissingEvidence: The run has no values of single units, or no labels.
        UnknownName: The run has no such metric, model, label or value of a label.

    Example:
        recbias.examples("quickstart", group="gender=f", worst=3)[["unit_id", "value", "missed"]]
    """
    tables = read_run((run if isinstance(run, Run) else load(run, out)).folder)
    rows = select_examples(tables, metric, group, worst, models)
    return pd.DataFrame(rows, columns=list(EXAMPLE_COLUMNS))
