"""How far the metrics of a run agree on the order of the models, and the table of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recbias.core.measures import DATASET
from recbias.reports import views, wording
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
from recbias.statistics.agreement import Agreement, kendall_tau

_FEWEST_MODELS, _FEWEST_METRICS, MOST_METRICS = 4, 3, 16


@dataclass(frozen=True, eq=False)
class MetricAgreement:
    """Kendall's tau-b between the metrics of a run on one dataset.

    Args:
        metrics: The headings of the metrics.
        agreement: Tau of each pair, and the number of models with both values.
        excluded: The models without a finite value, for each metric that has such models.
        omitted: The number of metrics above ``MOST_METRICS``.
    """

    metrics: Sequence[str]
    agreement: Agreement
    excluded: Mapping[str, Sequence[str]]
    omitted: int = 0

    def get_tau(self, pair: tuple[int, int]) -> float:
        """Return tau of a pair of metrics; NaN over fewer than ``_FEWEST_MODELS`` models."""
        enough = self.agreement.n[pair] >= _FEWEST_MODELS
        return float(self.agreement.tau[pair]) if enough else math.nan

    def describe_models(self) -> str:
        """Return over how many models the pairs of metrics are compared."""
        counts = [self.agreement.n[pair] for pair in self.list_pairs()]
        return (
            f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        )

    def list_pairs(self) -> list[tuple[int, int]]:
        """Return each pair of metrics once."""
        return list(itertools.combinations(range(len(self.metrics)), 2))

    def describe_excluded(self) -> Iterator[str]:
        """Yield a sentence for each metric that is undefined for some models."""
        for metric, models in self.excluded.items():
            n = f"{len(models)} model" if len(models) == 1 else f"{len(models)} models"
            names = f"{', '.join(models[:4])}{', ...' if len(models) > 4 else ''}"
            yield f"{metric} is undefined or infinite for {n}, excluded from its pairs: {names}."


def compute_metric_agreement(run: RunTables, dataset: str) -> MetricAgreement | None:
    """Return Kendall's tau-b between metrics over the models; None below 4 models or 3 metrics.

    The values are the means over seeds and folds. Values by group or target are excluded, and
    gaps between groups: a gap repeats a metric that is there.
    """
    models = [model for model in views.list_models(run) if model != DATASET]
    values = _collect_values(run, dataset)
    defined = {metric: len(by_model) for metric, by_model in values.items()}
    metrics = [metric for metric, n in defined.items() if n >= _FEWEST_MODELS]
    retained = metrics[:MOST_METRICS]
    if len(retained) < _FEWEST_METRICS:
        return None
    table = [[values[metric].get(model, math.nan) for metric in retained] for model in models]
    headings = [make_heading(metric) for metric in retained]
    missing = {
        heading: [model for model in models if model not in values[metric]]
        for heading, metric in zip(headings, retained, strict=True)
    }
    excluded = {metric: names for metric, names in missing.items() if names}
    agreement = kendall_tau(np.array(table))
    return MetricAgreement(headings, agreement, excluded, len(metrics) - len(retained))


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


def build_agreement_tables(run: RunTables) -> list[Table]:
    """Return the table of Kendall's tau-b between metrics for each dataset that has one."""
    datasets = views.list_single_datasets(run)
    results = [(dataset, compute_metric_agreement(run, dataset)) for dataset in datasets]
    return [
        _tabulate_agreement(result, f" on {dataset}" if len(datasets) > 1 else "")
        for dataset, result in results
        if result is not None
    ]


def _tabulate_agreement(result: MetricAgreement, suffix: str) -> Table:
    """Return one row and one numbered column per metric."""
    numbers = range(1, len(result.metrics) + 1)
    rows = tuple(
        (
            Cell(f"{row} {metric}"),
            *(_build_cell(result, row - 1, column - 1) for column in numbers),
        )
        for row, metric in zip(numbers, result.metrics, strict=True)
    )
    heads = (
        Column(str(number), numeric=True, note=metric)
        for number, metric in zip(numbers, result.metrics, strict=True)
    )
    note = (
        f"Kendall's tau-b over {result.describe_models()} models: 1 is the same order of the "
        "models, -1 the reverse. The columns have the numbers of the rows."
    )
    title = f"Agreement of the metrics{suffix}"
    columns = (Column("metric"), *heads)
    return state_cutoff_once(Table(title, columns, rows, (note, *result.describe_excluded())))


def _build_cell(result: MetricAgreement, row: int, column: int) -> Cell:
    if row == column:
        return Cell("", note="the same metric")
    tau, n = result.get_tau((row, column)), int(result.agreement.n[row, column])
    text = wording.UNDEFINED if math.isnan(tau) else format_value(tau, 2)
    return Cell(text, tau, note=f"n {n}")
