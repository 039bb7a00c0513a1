"""The words of ``recbias compare``: runs side by side, or beside published figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.cli.grids import print_rows
from recbias.core.errors import Contradiction, MixedRuns
from recbias.reports.published_tables.compare_published import (
    compare_with,
    load_published,
    remarks,
)
from recbias.reports.views.definitions import title_of
from recbias.reports.views.rounding import count, decimals, p_value, shown
from recbias.reports.views.run_tables import RunTables, read_run, rows_of
from recbias.runner.results.gap_comparison import compare_gaps
from recbias.runner.results.run_comparison import RunFrames, compare_runs

_FIGURES = ("n", "p", "p adjusted", "difference", "published", "measured", "relative")


def side_by_side(folders: Sequence[Path], correction: str) -> float:
    """Print every figure that the runs share; return the largest difference.

    Raises:
        Contradiction: There is one run only.
    """
    if len(folders) < 2:
        found = "there is nothing to compare a single run with"
        raise Contradiction(found, remedy="name a second run, or --reference children/a3")
    labels = labels_of(folders)
    runs = [read_run(each) for each in folders]
    frames = [
        RunFrames(label, run.metrics, run.per_unit)
        for label, run in zip(labels, runs, strict=True)
    ]
    table = compare_runs(frames, correction=correction)
    _print_side_by_side(table, labels, [*_tested(table, correction), *_left_out(frames, table)])
    gaps = compare_gaps(frames, correction=correction)
    if len(gaps):
        _print_side_by_side(gaps, labels, _of_gaps(gaps, correction), what="gap")
    return largest(table["value_a"], table["value_b"])


def labels_of(folders: Sequence[Path]) -> list[str]:
    """Return what runs are called: their experiments, else their own names where those are one.

    >>> labels_of([Path("results/a/1"), Path("results/b/2")])
    ['a', 'b']
    >>> labels_of([Path("results/a/1"), Path("results/a/2")])
    ['1', '2']
    """
    experiments = [folder.parent.name for folder in folders]
    return experiments if len({*experiments}) == len(folders) else [each.name for each in folders]


def largest(a: pd.Series, b: pd.Series) -> float:
    """Return the largest difference; what is undefined in one of two only is infinitely far.

    >>> largest(pd.Series([0.5, math.nan]), pd.Series([0.75, math.nan]))
    0.25
    >>> largest(pd.Series([0.1]), pd.Series([math.nan]))
    inf
    """
    neither = a.isna() & b.isna()
    return float((a - b).abs().fillna(math.inf).mask(neither, 0.0).max())


def against_published(
    folders: Sequence[Path], reference: str, fail_over: float | None, tolerance: float = 0.01
) -> float:
    """Print published beside measured for each run; return the largest difference.

    Raises:
        MixedRuns: A run has none of the published figures.
    """
    worst = 0.0
    for label, folder in zip(labels_of(folders), folders, strict=True):
        run = read_run(folder)
        limit = tolerance if fail_over is None else fail_over
        table = compare_with(run, reference, tolerance=limit)
        if table.empty:
            found = f"no model and metric of {label} stand in {reference}"
            raise MixedRuns(found, remedy=_what_stands_in(reference))
        _print_published(table, run, f"{label} beside {reference}", limit)
        worst = max(worst, largest(table["measured"], table["published"]))
    return worst


def _what_stands_in(reference: str) -> str:
    published = load_published(reference)
    systems, metrics = (", ".join(published[name].unique()) for name in ("system", "metric"))
    return f"it holds {metrics} of {systems}"


def _print_side_by_side(
    table: pd.DataFrame, labels: Sequence[str], notes: Sequence[str], *, what: str = "figure"
) -> None:
    rows = rows_of(table)
    same = {name: {str(row[name]) for row in rows} for name in ("dataset", "seed", "fold")}
    where = ", ".join(f"{name} {min(texts)}" for name, texts in same.items() if len(texts) == 1)
    several = len(labels) > 2
    names = [name for name, texts in same.items() if len(texts) > 1]
    names += ["model", "metric", "group", "target", *(("a", "b") if several else ())]
    pair = ("value of a", "value of b") if several else labels
    size = ["n"] if _size(table) is None else []
    print_rows(
        (*names, *pair, "difference", *size, "p", "p adjusted"),
        [(*_place(row, names), *_values(row), *_test(row, size)) for row in rows],
        title=f"{', '.join(labels)}: {count(len(rows), what)}{where and f' ({where})'}",
        numeric=(*_FIGURES, *pair),
        notes=notes,
    )


def _size(table: pd.DataFrame) -> int | None:
    """Return the number of units where all tests have the same."""
    sizes = set(table.loc[table["p"].notna(), "n"])
    return int(min(sizes)) if len(sizes) == 1 else None


def _place(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    k = float(row["k"]) if row["k"] else math.nan
    known = {**row, "metric": title_of(row["metric"], k)}
    return [str(known[name]) for name in names]


def _values(row: Mapping[str, Any]) -> list[str]:
    places = decimals([row["value_a"], row["value_b"]])
    return [shown(row[name], places) for name in ("value_a", "value_b", "difference")]


def _test(row: Mapping[str, Any], size: Sequence[str]) -> list[str]:
    if math.isnan(row["p"]):
        return [""] * (2 + len(size))
    return [f"{row['n']:,}"] * len(size) + [p_value(row["p"]), p_value(row["p_adjusted"])]


def _tested(table: pd.DataFrame, correction: str) -> list[str]:
    tests = int(table["p"].notna().sum())
    notes = ["Difference: the first less the second."]
    if tests:
        size = _size(table)
        units = "the n units" if size is None else f"the {count(size, 'unit')}"
        notes[0] += (
            f" p: paired t-test over {units} of both; "
            f"p adjusted: {correction} over {count(tests, 'test')}."
        )
    if tests < len(table):
        notes.append("Without a p: figures that have no units, or that are of other units.")
    return notes


def _of_gaps(table: pd.DataFrame, correction: str) -> list[str]:
    tests = int(table["p"].notna().sum())
    tested = "t-test of what changed in each unit, paired where both groups have the same units"
    return [
        "Gap: one group less another. Difference: the gap of the first less that of the second.",
        f"p: {tested}, else Welch's; p adjusted: {correction} over {count(tests, 'test')}.",
    ]


def _left_out(frames: Sequence[RunFrames], table: pd.DataFrame) -> list[str]:
    notes = []
    for one, other in combinations(frames, 2):
        shared = int(((table["a"] == one.label) & (table["b"] == other.label)).sum())
        for run, without in ((one, other), (other, one)):
            alone = len(run.metrics) - shared
            if alone > 0:
                notes.append(f"Left out: {count(alone, 'figure')} that {without.label} lacks.")
    return notes


def _print_published(table: pd.DataFrame, run: RunTables, title: str, limit: float) -> None:
    print_rows(
        ("model", "metric", "published", "measured", "difference", "relative", "within"),
        [(row["system"], *_published(row)) for row in rows_of(table)],
        title=title,
        numeric=_FIGURES,
        notes=(f"Within: at most {limit:g} apart.", *remarks(run, str(table["table"].iloc[0]))),
    )


def _published(row: Mapping[str, Any]) -> list[str]:
    figures = [row[name] for name in ("published", "measured", "difference")]
    places = decimals(figures)
    return [
        title_of(row["metric"], row["k"]),
        *(shown(each, places) for each in figures),
        "" if math.isnan(row["relative"]) else f"{row['relative']:+.1%}",
        "yes" if row["within"] else "no",
    ]
