"""The tables of ``recbias compare --reference``: runs next to published results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.cli.comparisons import label_runs
from recbias.cli.gates.tolerances import (
    explain_distance,
    find_distant_values,
    list_published_names,
)
from recbias.cli.grids import print_rows
from recbias.core.errors import MixedRuns
from recbias.reports.published_tables.compare_published import compare_published, list_remarks
from recbias.reports.published_tables.sources import load_published
from recbias.reports.views.definitions import format_title
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables, read_run, to_records
from recbias.runner.checks.tolerances import Tolerances, is_within, measure_distance

_NUMERIC = ("published", "measured", "difference", "relative")


@dataclass(frozen=True, eq=False)
class PublishedComparison:
    """Runs next to published results.

    Args:
        tables: The table of ``compare_published`` of each run, by its label.
        worse: The values that differ by more than their tolerance.
    """

    reference: str
    runs: Mapping[str, RunTables]
    tables: Mapping[str, pd.DataFrame]
    worse: Sequence[dict[str, Any]]
    limits: str

    def print(self) -> None:
        """Print one table for each run."""
        for label, table in self.tables.items():
            remarks = list_remarks(self.runs[label], str(table["table"].iloc[0]))
            print_rows(
                ("model", "metric", "published", "measured", "difference", "relative", "within"),
                list(map(_render_published, to_records(table))),
                title=f"{label} and {self.reference}",
                numeric=_NUMERIC,
                notes=(f"Within: the difference is at most {self.limits}.", *remarks),
            )

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``--json``."""
        values = {label: to_records(table) for label, table in self.tables.items()}
        return {
            "runs": [*self.tables],
            "reference": self.reference,
            "values": [{"run": label, **row} for label in values for row in values[label]],
            "out_of_tolerance": [*self.worse],
        }

    def explain_excesses(self) -> list[str]:
        """Return a sentence on each value that is out of tolerance."""
        return [*map(explain_distance, self.worse)]


def compare_with_published(
    folders: Sequence[Path], reference: str, tolerances: Tolerances, default: float = 0.01
) -> PublishedComparison:
    """Compare runs with published values; ``default`` is the tolerance of ``within``.

    Raises:
        MixedRuns: A run has none of the published values.
        UnknownName: A tolerance is of a metric without a published value.
    """
    runs = dict(zip(label_runs(folders), map(read_run, folders), strict=True))
    tables = {
        label: _compare_published(label, run, reference, tolerances, default)
        for label, run in runs.items()
    }
    tolerances.require_known(
        name for table in tables.values() for name in list_published_names(table)
    )
    worse = [
        {"run": label, **row}
        for label, table in tables.items()
        for row in find_distant_values(table, tolerances)
    ]
    return PublishedComparison(reference, runs, tables, worse, tolerances.describe(default))


def _compare_published(
    label: str, run: RunTables, reference: str, tolerances: Tolerances, default: float
) -> pd.DataFrame:
    table = compare_published(run, reference)
    if table.empty:
        published = load_published(reference)
        metrics, systems = (", ".join(published[name].unique()) for name in ("metric", "system"))
        message = f"{reference} has no value for any model and metric of {label}"
        raise MixedRuns(message, remedy=f"it has {metrics} of {systems}")
    within = [
        is_within(
            measure_distance(row["measured"], row["published"]),
            tolerances.find_limit([format_title(row["metric"], row["k"]), row["metric"]], default),
        )
        for row in to_records(table)
    ]
    return table.assign(within=within)


def _render_published(row: Mapping[str, Any]) -> list[str]:
    values = [row[name] for name in ("published", "measured", "difference")]
    places = count_decimals(values)
    return [
        row["system"],
        format_title(row["metric"], row["k"]),
        *(format_value(value, places) for value in values),
        "" if math.isnan(row["relative"]) else f"{row['relative']:+.1%}",
        "yes" if row["within"] else "no",
    ]
