"""The tables of ``recbias compare``: runs side by side, or next to published results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.cli.grids import print_rows
from recbias.core.errors import Contradiction, MixedRuns
from recbias.reports.published_tables.compare_published import compare_published, list_remarks
from recbias.reports.published_tables.sources import load_published
from recbias.reports.views.definitions import format_title
from recbias.reports.views.rounding import (
    count_decimals,
    format_count,
    format_p_value,
    format_value,
)
from recbias.reports.views.run_tables import RunTables, read_run, to_records
from recbias.runner.results.gap_comparison import compare_gaps
from recbias.runner.results.run_comparison import RunFrames, compare_runs

_NUMERIC = ("n", "p", "p adjusted", "difference", "published", "measured", "relative")


def compare_side_by_side(folders: Sequence[Path], correction: str) -> float:
    """Print every metric that the runs share; return the largest difference.

    Raises:
        Contradiction: There is only one run.
    """
    if len(folders) < 2:
        remedy = "name a second run, or --reference children/a3"
        raise Contradiction("a single run cannot be compared", remedy=remedy)
    labels = label_runs(folders)
    runs = [read_run(folder) for folder in folders]
    names = zip(labels, runs, strict=True)
    frames = [RunFrames(label, run.metrics, run.per_unit) for label, run in names]
    table = compare_runs(frames, correction=correction)
    notes = [*_explain_tests(table, correction), *_count_excluded(frames, table)]
    _print_side_by_side(table, labels, notes, unit="value")
    gaps = compare_gaps(frames, correction=correction)
    if len(gaps):
        _print_side_by_side(gaps, labels, _explain_gaps(gaps, correction), unit="gap")
    return find_largest_difference(table["value_a"], table["value_b"])


def label_runs(folders: Sequence[Path]) -> list[str]:
    """Return the names of runs: their experiments, or their run ids if two have the same one.

    >>> label_runs([Path("results/a/1"), Path("results/b/2")])
    ['a', 'b']
    >>> label_runs([Path("results/a/1"), Path("results/a/2")])
    ['1', '2']
    """
    experiments = [folder.parent.name for folder in folders]
    is_unique = len({*experiments}) == len(folders)
    return experiments if is_unique else [folder.name for folder in folders]


def find_largest_difference(a: pd.Series, b: pd.Series) -> float:
    """Return the largest absolute difference, infinite where only one value is undefined.

    >>> find_largest_difference(pd.Series([0.5, math.nan]), pd.Series([0.75, math.nan]))
    0.25
    >>> find_largest_difference(pd.Series([0.1]), pd.Series([math.nan]))
    inf
    """
    are_undefined = a.isna() & b.isna()
    return float((a - b).abs().fillna(math.inf).mask(are_undefined, 0.0).max())


def compare_with_published(
    folders: Sequence[Path], reference: str, fail_over: float | None, tolerance: float = 0.01
) -> float:
    """Print published and measured values for each run; return the largest difference.

    Raises:
        MixedRuns: A run has none of the published values.
    """
    limit = tolerance if fail_over is None else fail_over
    differences = [0.0]
    for label, folder in zip(label_runs(folders), folders, strict=True):
        run = read_run(folder)
        table = compare_published(run, reference, tolerance=limit)
        if table.empty:
            published = load_published(reference)
            metrics, systems = (
                ", ".join(published[name].unique()) for name in ("metric", "system")
            )
            message = f"{reference} has no value for any model and metric of {label}"
            raise MixedRuns(message, remedy=f"it has {metrics} of {systems}")
        _print_published(table, run, f"{label} and {reference}", limit)
        differences.append(find_largest_difference(table["measured"], table["published"]))
    return max(differences)


def _print_side_by_side(
    table: pd.DataFrame, labels: Sequence[str], notes: Sequence[str], *, unit: str
) -> None:
    rows = to_records(table)
    values = {name: {str(row[name]) for row in rows} for name in ("dataset", "seed", "fold")}
    constants = [f"{name} {min(texts)}" for name, texts in values.items() if len(texts) == 1]
    suffix = f" ({', '.join(constants)})" if constants else ""
    has_pairs = len(labels) > 2
    keys = [name for name, texts in values.items() if len(texts) > 1]
    keys += ["model", "metric", "group", "target", *(("a", "b") if has_pairs else ())]
    pair = ("value of a", "value of b") if has_pairs else labels
    size = ["n"] if _find_common_size(table) is None else []
    print_rows(
        (*keys, *pair, "difference", *size, "p", "p adjusted"),
        [_render_row(row, keys, size) for row in rows],
        title=f"{', '.join(labels)}: {format_count(len(rows), unit)}{suffix}",
        numeric=(*_NUMERIC, *pair),
        notes=notes,
    )


def _find_common_size(table: pd.DataFrame) -> int | None:
    """Return the number of units if all tests have the same."""
    sizes = set(table.loc[table["p"].notna(), "n"])
    return int(sizes.pop()) if len(sizes) == 1 else None


def _render_row(row: Mapping[str, Any], names: Sequence[str], size: Sequence[str]) -> list[str]:
    """Return the keys, the values and the test of a row; the test is blank without a p-value."""
    title = format_title(row["metric"], float(row["k"]) if row["k"] else math.nan)
    places = count_decimals([row["value_a"], row["value_b"]])
    tests = [f"{row['n']:,}"] * len(size) + [format_p_value(row[p]) for p in ("p", "p_adjusted")]
    return [
        *(title if name == "metric" else str(row[name]) for name in names),
        *(format_value(row[name], places) for name in ("value_a", "value_b", "difference")),
        *([""] * len(tests) if math.isnan(row["p"]) else tests),
    ]


def _explain_tests(table: pd.DataFrame, correction: str) -> list[str]:
    tests = int(table["p"].notna().sum())
    notes = ["Difference: first minus second."]
    if tests:
        size = _find_common_size(table)
        units = "the n units" if size is None else f"the {format_count(size, 'unit')}"
        notes[0] += (
            f" p: paired t-test over {units} that both runs have; "
            f"p adjusted: {correction} over {format_count(tests, 'test')}."
        )
    if tests < len(table):
        notes.append("No p: the value has no units, or the runs have different units.")
    return notes


def _explain_gaps(table: pd.DataFrame, correction: str) -> list[str]:
    tests = format_count(int(table["p"].notna().sum()), "test")
    return [
        "Gap: one group minus another. Difference: gap of the first run minus gap of the second.",
        (
            "p: t-test of the change of each unit, paired if both groups have the same units, "
            f"else Welch's; p adjusted: {correction} over {tests}."
        ),
    ]


def _count_excluded(frames: Sequence[RunFrames], table: pd.DataFrame) -> list[str]:
    notes = []
    for a, b in combinations(frames, 2):
        n_shared = int(((table["a"] == a.label) & (table["b"] == b.label)).sum())
        for run, other_run in permutations((a, b)):
            n_excluded = len(run.metrics) - n_shared
            if n_excluded > 0:
                values = format_count(n_excluded, "value")
                notes.append(f"Excluded: {values} of {run.label} that {other_run.label} lacks.")
    return notes


def _print_published(table: pd.DataFrame, run: RunTables, title: str, limit: float) -> None:
    remarks = list_remarks(run, str(table["table"].iloc[0]))
    print_rows(
        ("model", "metric", "published", "measured", "difference", "relative", "within"),
        list(map(_render_published, to_records(table))),
        title=title,
        numeric=_NUMERIC,
        notes=(f"Within: the difference is at most {limit:g}.", *remarks),
    )


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
