"""The tables of ``recbias compare``: runs side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.cli.gates.group_gaps import add_gaps, define_all_gaps
from recbias.cli.gates.tolerances import (
    collect_all_definitions,
    explain_excess,
    find_missing_values,
    find_worse_values,
)
from recbias.cli.grids import print_grid, print_rows
from recbias.cli.output.comparison_notes import (
    explain_gaps,
    explain_no_change,
    explain_renamings,
    explain_rounds,
    explain_tests,
    find_common_size,
)
from recbias.cli.printing import print_line
from recbias.core.errors import Contradiction
from recbias.reports.several_runs import build_runs_table
from recbias.reports.views.definitions import Definition, collect_definitions, format_title
from recbias.reports.views.grid import Table
from recbias.reports.views.rounding import (
    count_decimals,
    format_count,
    format_p_value,
    format_value,
)
from recbias.reports.views.run_tables import read_run, to_records
from recbias.runner.checks.tolerances import Tolerances
from recbias.runner.comparison.aligned_names import Renaming, align_names
from recbias.runner.comparison.gap_comparison import compare_gaps
from recbias.runner.comparison.run_comparison import (
    RunFrames,
    compare_runs,
    merge_metrics,
)

_NUMERIC = ("n", "p", "p adjusted", "difference", "95% interval")


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Runs side by side.

    Args:
        values: The table of ``compare_runs``.
        gaps: The table of ``compare_gaps``.
        worse: The values that are worse by more than their tolerance, or missing in a later run.
        definitions: The metrics by title.
        ungated: The titles of the metrics without a tolerance, if others have one.
        results: The results of three or more runs, else None.
        rounds: A sentence on the rounds of feedback after the first, if runs have them.
        renamings: The entries that are compared although their automatic names differ.
    """

    frames: Sequence[RunFrames]
    values: pd.DataFrame
    gaps: pd.DataFrame
    worse: Sequence[dict[str, Any]]
    correction: str
    definitions: Mapping[str, Definition]
    ungated: Sequence[str] = ()
    results: Table | None = None
    rounds: str = ""
    renamings: Sequence[Renaming] = ()

    @property
    def unchanged(self) -> int:
        """The number of values with the same address in both runs of a pair."""
        shared = sum(len(merge_metrics(*pair)) for pair in combinations(self.frames, 2))
        return shared - len(self.values)

    def print(self) -> None:
        """Print the tables of the values and the gaps."""
        labels = [run.label for run in self.frames]
        if self.results is not None:
            values = [column.title for column in self.results.columns if column.numeric]
            print_grid(self.results, optional=values[:0:-1])
        notes = [*explain_tests(self.values, self.correction), *self._explain_omissions()]
        if len(self.values):
            self._print_side_by_side(self.values, labels, notes, unit="value")
        else:
            scope = " in the first round" if self.rounds else ""
            verdict = explain_no_change(_list_excluded(self.frames))
            for line in (f"{', '.join(labels)}: {verdict}{scope}", *notes[1:]):
                print_line(line)
        if len(self.gaps):
            notes = explain_gaps(self.gaps, self.correction)
            self._print_side_by_side(self.gaps, labels, notes, unit="gap")

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``--json``."""
        return {
            "runs": [run.label for run in self.frames],
            "correction": self.correction,
            "values": to_records(self.values),
            "gaps": to_records(self.gaps),
            "unchanged": self.unchanged,
            "excluded": _list_excluded(self.frames),
            "out_of_tolerance": [*self.worse],
            "without_tolerance": [*self.ungated],
            "rounds": self.rounds,
            "renamed": [vars(renaming) for renaming in self.renamings],
        }

    def explain_excesses(self) -> list[str]:
        """Return a sentence on each value that is out of tolerance."""
        return [explain_excess(row, self.definitions[row["metric"]]) for row in self.worse]

    def _explain_omissions(self) -> list[str]:
        excluded = [
            f"Excluded: {format_count(row['values'], 'value')} of {row['run']} that "
            f"{row['lacking']} lacks."
            for row in _list_excluded(self.frames)
        ]
        if self.ungated:
            headings = (self.definitions[title].heading for title in self.ungated)
            excluded.append(f"Without a tolerance: {'; '.join(headings)}.")
        excluded += [self.rounds] if self.rounds else []
        excluded += explain_renamings(self.renamings)
        if not self.unchanged:
            return excluded
        values = format_count(self.unchanged, "value")
        return [f"Unchanged: {values} with the same address in both runs.", *excluded]

    def _print_side_by_side(
        self, table: pd.DataFrame, labels: Sequence[str], notes: Sequence[str], *, unit: str
    ) -> None:
        rows = to_records(table)
        values = {name: {str(row[name]) for row in rows} for name in ("dataset", "seed", "fold")}
        constants = [f"{name} {min(texts)}" for name, texts in values.items() if len(texts) == 1]
        suffix = f" ({', '.join(constants)})" if constants else ""
        has_pairs = len(labels) > 2
        keys = [name for name, texts in values.items() if len(texts) > 1]
        keys += ["model", "metric", *(("a", "b") if has_pairs else ())]
        pair = ("value of a", "value of b") if has_pairs else labels
        size = ["n"] if find_common_size(table) is None else []
        print_rows(
            (*keys, *pair, "difference", "95% interval", *size, "p", "p adjusted"),
            [self._render_row(row, keys, size) for row in rows],
            title=f"{', '.join(labels)}: {format_count(len(rows), unit)}{suffix}",
            numeric=(*_NUMERIC, *pair),
            notes=notes,
            optional=("n", "p", pair[0]),
        )

    def _render_row(
        self, row: Mapping[str, Any], names: Sequence[str], size: Sequence[str]
    ) -> list[str]:
        """Return the keys, the values and the test; the test is blank without a p-value."""
        title = format_title(row["metric"], float(row["k"]) if row["k"] else math.nan)
        texts = {
            **row,
            "metric": self.definitions[title].describe_value(row["group"], row["target"]),
        }
        places = count_decimals([row["value_a"], row["value_b"]])
        interval = " to ".join(format_value(row[end], places) for end in ("ci_low", "ci_high"))
        tests = [
            *("" if math.isnan(row["ci_low"]) else interval, *[f"{row['n']:,}"] * len(size)),
            *(format_p_value(row[p]) for p in ("p", "p_adjusted")),
        ]
        return [
            *(str(texts[name]) for name in names),
            *(format_value(row[name], places) for name in ("value_a", "value_b", "difference")),
            *([""] * len(tests) if math.isnan(row["p"]) else tests),
        ]


def compare_side_by_side(
    folders: Sequence[Path], correction: str, tolerances: Tolerances
) -> RunComparison:
    """Compare every metric that the runs share.

    Raises:
        Contradiction: There is only one run.
    """
    if len(folders) < 2:
        remedy = "name a second run, or --reference children/a3"
        raise Contradiction("a single run cannot be compared", remedy=remedy)
    runs = [read_run(folder) for folder in folders]
    labels = label_runs(folders)
    frames, renamings = align_names(
        [
            RunFrames(label, run.metrics, run.per_unit, run.replicates, run.manifest)
            for label, run in zip(labels, runs, strict=True)
        ]
    )
    by_label = dict(zip(labels, runs, strict=True))
    results = build_runs_table(by_label) if len(runs) > 2 else None
    values = compare_runs(frames, correction=correction)
    gaps = compare_gaps(frames, correction=correction)
    gaps_of_groups = define_all_gaps([collect_definitions(run) for run in runs], renamings)
    judged = [add_gaps(frame, gaps) for frame, gaps in zip(frames, gaps_of_groups, strict=True)]
    changes = pd.concat([merge_metrics(*pair) for pair in combinations(judged, 2)])
    derived = {gap.title: gap for gaps in gaps_of_groups for gap in gaps.values()}
    definitions = collect_all_definitions(runs)
    definitions |= {title: gap for title, gap in derived.items() if title not in definitions}
    tolerances.require_known(name for metric in definitions.values() for name in metric.names)
    worse = [
        *find_worse_values(changes, definitions, tolerances),
        *find_missing_values(judged, definitions, tolerances),
    ]
    ungated = [
        title
        for title, metric in definitions.items()
        if tolerances.tolerances and math.isinf(tolerances.find_limit(metric.names))
    ]
    rounds = explain_rounds([run.rounds for run in runs])
    return RunComparison(
        *(frames, values, gaps, worse, correction, definitions),
        *(ungated, results, rounds, renamings),
    )


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


def _list_excluded(frames: Sequence[RunFrames]) -> list[dict[str, Any]]:
    """Return how many values of each run another run lacks, where there are any."""
    rows: list[dict[str, Any]] = []
    for a, b in combinations(frames, 2):
        n_shared = len(merge_metrics(a, b))
        rows += [
            {"run": run.label, "lacking": other.label, "values": len(run.metrics) - n_shared}
            for run, other in permutations((a, b))
        ]
    return [row for row in rows if row["values"] > 0]
