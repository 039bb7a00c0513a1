"""The values of metrics over the rounds of a feedback loop, as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headline import list_single_datasets, select_varying
from recbias.reports.views.round_curves import list_round_curves
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables

TITLE = "Values over rounds of feedback"
"""The title of the table."""

MOST_ROUNDS = 8
"""The number of rounds that the table shows, the first and the last among them."""


def build_round_table(run: RunTables) -> Table | None:
    """Return one row for each metric, group, target and model; None without feedback."""
    datasets = list_single_datasets(run)
    rows = [(name, curve) for name in datasets for curve in list_round_curves(run, name)]
    if not rows:
        return None
    numbers = _select_rounds(sorted({number for _, curve in rows for number in curve.values}))
    several = len(datasets) > 1
    titles = [f"round {number}" for number in numbers]
    cells = []
    for name, curve in rows:
        values = [curve.values.get(number, np.nan) for number in numbers]
        places = count_decimals(values)
        heading = curve.metric.describe_value(curve.group, curve.target)
        cells.append(
            (
                *([Cell(name)] if several else []),
                Cell(heading),
                Cell(curve.model),
                *(Cell(format_value(value, places), value) for value in values),
            )
        )
    columns = (*(["dataset"] if several else []), "metric", "model", *titles)
    return Table(TITLE, make_columns(columns, numeric=titles), tuple(cells), _explain(run.rounds))


def _select_rounds(numbers: list[int]) -> list[int]:
    """Return at most ``MOST_ROUNDS`` of the rounds, evenly spaced."""
    at = np.linspace(0, len(numbers) - 1, min(MOST_ROUNDS, len(numbers))).round().astype(int)
    return [numbers[position] for position in at.tolist()]


def _explain(rounds: pd.DataFrame | None) -> tuple[str, ...]:
    how = (
        "In each round a model is trained on the data of the round before and on what users "
        "accepted from its lists; every model has a history of its own."
    )
    notes = (how, "All other tables are of round 1. Intervals are in rounds.csv.")
    if rounds is not None and select_varying(rounds, ["seed", "fold"]):
        return (*notes, "The values are means over seeds and folds.")
    return notes
