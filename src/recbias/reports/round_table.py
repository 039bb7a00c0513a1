"""The values of metrics over the rounds of a feedback loop, as curves and as a table."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.grid import Cell, Table, make_columns
from recbias.reports.views.headline import list_models, list_single_datasets, select_varying
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables, to_records

TITLE = "Values over rounds of feedback"
"""The title of the table."""

MOST_ROUNDS = 8
"""The number of rounds that the table shows, the first and the last among them."""


@dataclass(frozen=True)
class RoundCurve:
    """The values of one model, group and target over rounds: means over seeds and folds.

    Args:
        values: The value by round, in order; NaN is undefined.
    """

    metric: Definition
    model: str
    group: str
    target: str
    values: Mapping[int, float]


def list_round_curves(run: RunTables, dataset: str) -> list[RoundCurve]:
    """Return the curves of a dataset by metric, group, target and model; none without feedback.

    The ratio and the standard deviation of groups are left out where their difference is there.
    """
    if run.rounds is None:
        return []
    table = run.rounds[run.rounds["dataset"] == dataset]
    columns = ["metric", "k", "group", "target", "model", "round"]
    definitions = collect_definitions(run)
    gaps = {row.groups_heading for row in definitions.values() if row.gap == "difference"}
    values: dict[tuple[str, ...], dict[int, list[float]]] = {}
    for row in to_records(table[[*columns, "value"]]):
        title = format_title(row["metric"], row["k"])
        keys = (title, str(row["group"]), str(row["target"]), str(row["model"]))
        values.setdefault(keys, {}).setdefault(int(row["round"]), []).append(row["value"])
    models = {model: at for at, model in enumerate(list_models(run))}
    places = {title: at for at, title in enumerate(definitions)}
    curves = [
        RoundCurve(
            metric=definitions[title],
            model=model,
            group=group,
            target=target,
            values={number: float(np.mean(points)) for number, points in rounds.items()},
        )
        for (title, group, target, model), rounds in values.items()
        if title in definitions and not _is_beside(definitions[title], gaps)
    ]
    return sorted(
        curves,
        key=lambda curve: (
            *(places[curve.metric.title], curve.group, curve.target),
            models.get(curve.model, len(models)),
        ),
    )


def _is_beside(metric: Definition, gaps: Container[str]) -> bool:
    """Return whether a metric is the ratio or spread of groups whose difference is shown."""
    return metric.gap in {"ratio", "std"} and metric.groups_heading in gaps


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
