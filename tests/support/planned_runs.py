"""Runs that a spec plans, with invented values, to see what published tables are joined to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.config.experiment import Experiment
from recbias.core.measures import METRICS, SIGNIFICANCE
from recbias.reports.published import Join, PublishedTable, load_published
from recbias.reports.run import RunTables, to_records
from recbias.reports.views import ALL
from recbias.runner.manifest import describe_metric

CATALOGUE = "(dataset)"
"""The model of metrics of the dataset."""


def invent_run(experiment: Experiment, table: PublishedTable) -> RunTables:
    """Return a run of what a spec plans, in which every value is another number.

    Datasets, models and metrics with their settings are those of the spec. Groups, targets and
    tests are those that the joins of the published table name, as only a real run has them.
    """
    numbers = (float(number) for number in itertools.count(1))
    rows = list_published_values(table.name)
    datasets = [dataset.label for dataset in experiment.datasets]
    datasets += [ALL] if len(datasets) > 1 else []
    models = [*(model.label for model in experiment.models), CATALOGUE]
    metrics, tests = [], []
    for metric in experiment.metrics:
        joins = [join for join in table.joins if join.metric.casefold() == metric.name.casefold()]
        parts = sorted(list_parts(joins, rows)) if table.joins else [("", "")]
        for dataset, model, (group, target) in itertools.product(datasets, models, parts):
            row = {"dataset": dataset, "model": model, "seed": 1, "fold": 1}
            row |= {"metric": metric.label, "k": metric.parameters.get("k")}
            row |= {"group": group, "target": target}
            metrics.append({**row, "value": next(numbers)})
            tests += [{**row, **test} for test in invent_tests(joins, model, numbers)]
    return RunTables(
        Path(),
        pd.DataFrame(metrics, columns=list(METRICS.names)),
        pd.DataFrame(tests, columns=list(SIGNIFICANCE.names)),
        describe_plan(experiment),
    )


def describe_plan(experiment: Experiment) -> Mapping[str, Any]:
    """Return the manifest of a run as far as a spec determines it."""
    return {
        "models": [{"label": model.label, "name": model.name} for model in experiment.models],
        "datasets": [{"label": dataset.label} for dataset in experiment.datasets],
        "metrics": [describe_metric(metric) for metric in experiment.metrics],
    }


def list_parts(joins: Sequence[Join], rows: Sequence[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return the groups and targets that joins name."""
    parts = set()
    for join, row in itertools.product(joins, rows):
        if join.applies_to(row):
            criteria = join.build_criteria(row)
            names = [criteria.get(name, {""}) for name in ("group", "target")]
            parts |= set(itertools.product(*names))
    return parts


WITHIN_MODEL = {"groups", "targets"}
"""What the tests of a metric of one model are between."""


def invent_tests(
    joins: Sequence[Join], model: str, numbers: Iterator[float]
) -> Iterator[dict[str, Any]]:
    """Yield the results of tests that joins compare; ``p chi_squared NG`` is one with NG."""
    for figure in sorted({join.figure for join in joins} - {"value"}):
        column, test, last = figure.split(" ")
        within_model = {"between": last}
        between_models = {"between": "models", "model": "", "a": model, "b": last}
        compared = within_model if last in WITHIN_MODEL else between_models
        yield {"test": test, column: next(numbers), **compared}


def list_published_values(name: str) -> list[dict[str, Any]]:
    """Return the rows of a published table whose value is a number."""
    frame = load_published(name)
    is_number = ~pd.to_numeric(frame["value"], errors="coerce").isna()
    return [row for row in to_records(frame[is_number]) if not math.isnan(float(row["value"]))]
