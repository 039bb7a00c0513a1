"""How far the metrics of a run agree on the order of the models, and the table of it."""

from __future__ import annotations

import math

import numpy as np

from recbias.core.measures import DATASET
from recbias.reports import views
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import collect_definitions
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    format_value,
    make_heading,
    state_cutoff_once,
)
from recbias.statistics.agreement import kendall_tau

_FEWEST_MODELS, _FEWEST_METRICS, MOST_METRICS = 4, 3, 16


def build_agreement_tables(run: RunTables) -> list[Table]:
    """Return the table of Kendall's tau-b between metrics for each dataset that has one."""
    datasets = views.list_single_datasets(run)
    tables = (
        _tabulate(run, dataset, f" on {dataset}" if len(datasets) > 1 else "")
        for dataset in datasets
    )
    return [table for table in tables if table is not None]


def _tabulate(run: RunTables, dataset: str, suffix: str) -> Table | None:
    """Return one row and one numbered column per metric; None below 4 models or 3 metrics.

    The values are the means over seeds and folds. Values by group or target are excluded, and
    gaps between groups: a gap repeats a metric that is there. A pair is compared over the models
    that have both values.
    """
    models = [model for model in views.list_models(run) if model != DATASET]
    values = {
        metric: [of_metric.get(model, math.nan) for model in models]
        for metric, of_metric in _collect_values(run, dataset).items()
        if len(of_metric) >= _FEWEST_MODELS
    }
    if len(values) < _FEWEST_METRICS:
        return None
    headings = [*map(make_heading, values)][:MOST_METRICS]
    agreement = kendall_tau(np.array([*values.values()][:MOST_METRICS]).T)
    is_compared = agreement.n >= _FEWEST_MODELS
    taus = np.where(is_compared, agreement.tau, math.nan)
    rows = [
        (
            Cell(f"{number} {heading}"),
            *(
                Cell("" if at == number - 1 else format_value(tau, 2), tau, note=f"n {n}")
                for at, (tau, n) in enumerate(zip(of_row, counts, strict=True))
            ),
        )
        for number, (heading, of_row, counts) in enumerate(
            zip(headings, taus.tolist(), agreement.n.tolist(), strict=True), 1
        )
    ]
    heads = [Column(f"{at}", numeric=True, note=name) for at, name in enumerate(headings, 1)]
    pairs = agreement.n[np.triu_indices(len(headings), 1)]
    ends = sorted({int(pairs.min()), int(pairs.max())})
    note = (
        f"Kendall's tau-b over {' to '.join(map(str, ends))} models: 1 is the same order of the "
        "models, -1 the reverse. The columns have the numbers of the rows."
    )
    table = Table(
        f"Agreement of the metrics{suffix}", (Column("metric"), *heads), (*rows,), (note,)
    )
    return state_cutoff_once(table)


def _collect_values(run: RunTables, dataset: str) -> dict[str, dict[str, float]]:
    """Return the finite values of each metric by model."""
    definitions = collect_definitions(run)
    values: dict[str, dict[str, float]] = {title: {} for title in definitions}
    for row in to_records(views.select_headline(run, run.metrics)):
        title = views.format_title(row["metric"], row["k"])
        is_whole = not (row["group"] or row["target"]) and row["model"] != DATASET
        is_gap = "gap" in definitions[title].parameters
        if is_whole and not is_gap and row["dataset"] == dataset and math.isfinite(row["value"]):
            values[title][row["model"]] = row["value"]
    return values
