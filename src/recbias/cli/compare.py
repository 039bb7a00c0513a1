"""``recbias compare``, ``report`` and ``runs``, and the tables of a comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import pandas as pd
import typer

from recbias.cli.output import (
    OUT_OF_TOLERANCE,
    AsJson,
    Out,
    RunName,
    allow_closed_output,
    open_document,
    print_grid,
    print_line,
    print_rows,
    report_errors,
)
from recbias.core.errors import Contradiction, MixedRuns, UnknownName
from recbias.core.text import normalize_name, suggest
from recbias.reports.published import (
    build_reference_table,
    compare_published,
    list_remarks,
    load_published,
)
from recbias.reports.run import RunTables, read_run, to_records
from recbias.reports.views import Definition, collect_definitions, format_title
from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_duration,
    format_p_value,
    format_value,
)
from recbias.runner.gates import (
    Tolerances,
    is_within,
    measure_distance,
    parse_tolerance,
)
from recbias.runs.compare import (
    RunFrames,
    compare_gaps,
    compare_runs,
    label_runs,
    merge_metrics,
    pair_runs,
    read_frames,
)
from recbias.runs.excesses import (
    explain_distance,
    explain_excess,
    find_distant_values,
    find_missing_values,
    find_worse_values,
    list_published_names,
)
from recbias.runs.tables import find_run

_TESTS = {
    "paired_t": "paired t-test",
    "paired_bootstrap": "(values of whole sets) paired bootstrap",
    "gap_change": "(gaps of several groups) simultaneous bounds",
}
"""The tests in words."""


def _find_common_size(table: pd.DataFrame) -> int | None:
    """Return the number of units if all tests have the same."""
    sizes = set(table.loc[table["p"].notna(), "n"])
    return int(sizes.pop()) if len(sizes) == 1 else None


def _count_family(table: pd.DataFrame) -> int:
    """Return the number of tests that p-values are adjusted for."""
    return int(table["family_size"].max()) if len(table) else 0


def _explain_tests(table: pd.DataFrame, correction: str) -> list[str]:
    """Return what the columns of the table of ``compare_runs`` mean."""
    tests = _count_family(table)
    notes = ["Difference: the later run minus the earlier one, with its 95% interval."]
    if tests:
        size = _find_common_size(table)
        units = "the n units" if size is None else f"the {format_count(size, 'unit')}"
        names = [name for test, name in _TESTS.items() if test in {*table["test"]}]
        notes[0] += (
            f" p: {' or '.join(names)} over {units} that both runs have; "
            f"p adjusted: {correction} over {format_count(tests, 'test')}."
        )
    notes += _explain_other_units(table)
    if table["p"].isna().any():
        notes.append(
            "No p: the value is of all queries together and the queries differ, both runs have no "
            "unit in common, or all units differ by the same amount."
        )
    return notes


def _explain_other_units(table: pd.DataFrame) -> list[str]:
    """Return how many units of one run only there are, which do not count; nothing if none."""
    counts: Counter[str] = Counter()
    for side in ("a", "b"):
        for run, n in table.groupby(side)[f"only_{side}"].max().items():
            counts[str(run)] = max(counts[str(run)], int(n))
    others = [f"{format_count(n, 'unit')} of {run}" for run, n in counts.items() if n]
    if not others:
        return []
    least, most = (table.loc[table["n"] > 0, "n"].agg(name) for name in ("min", "max"))
    n = format_count(most, "unit") if least == most else f"{least:,} to {most:,} units"
    left_out = " and ".join(others)
    return [f"Values are over the {n} that both runs have; up to {left_out} are left out."]


def _explain_gaps(table: pd.DataFrame, correction: str) -> list[str]:
    """Return what the columns of the table of ``compare_gaps`` mean."""
    tests = format_count(_count_family(table), "test")
    return [
        "Gap: one group minus another. Difference: gap of the later run minus gap of the earlier.",
        (
            "p: t-test of the change of each unit, paired if both groups have the same units, "
            f"else Welch's; p adjusted: {correction} over {tests}."
        ),
    ]


def _explain_no_change(excluded: Sequence[Mapping[str, Any]]) -> str:
    """Return what to say of runs of which no shared value changed.

    >>> _explain_no_change([])
    'nothing changed'
    >>> _explain_no_change([{"run": "a", "lacking": "b", "values": 2}])
    'no value that both have changed; 2 results of a without a counterpart in b'
    """
    if not excluded:
        return "nothing changed"
    missing = [
        f"{format_count(row['values'], 'result')} of {row['run']} without a counterpart in "
        f"{row['lacking']}"
        for row in excluded
    ]
    return f"no value that both have changed; {', '.join(missing)}"


_NUMERIC = ("n", "p", "p adjusted", "difference", "95% interval")


@dataclass(frozen=True, eq=False)
class _RunComparison:
    """Runs side by side.

    Args:
        values: The table of ``compare_runs``.
        gaps: The table of ``compare_gaps``.
        worse: The values that are worse by more than their tolerance, or missing in a later run.
        definitions: The metrics by title.
        ungated: The titles of the metrics without a tolerance, if others have one.
    """

    frames: Sequence[RunFrames]
    values: pd.DataFrame
    gaps: pd.DataFrame
    worse: Sequence[dict[str, Any]]
    correction: str
    definitions: Mapping[str, Definition]
    ungated: Sequence[str] = ()

    @property
    def unchanged(self) -> int:
        """The number of values with the same address in both runs of a pair."""
        shared = sum(len(merge_metrics(*pair)) for pair in combinations(self.frames, 2))
        return shared - len(self.values)

    def print(self) -> None:
        """Print the tables of the values and the gaps."""
        labels = [run.label for run in self.frames]
        notes = [*_explain_tests(self.values, self.correction), *self._explain_omissions()]
        if len(self.values):
            self._print_side_by_side(self.values, labels, notes, unit="value")
        else:
            verdict = _explain_no_change(_list_excluded(self.frames))
            for line in (f"{', '.join(labels)}: {verdict}", *notes[1:]):
                print_line(line)
        if len(self.gaps):
            notes = _explain_gaps(self.gaps, self.correction)
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
        size = ["n"] if _find_common_size(table) is None else []
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


def _compare_side_by_side(
    folders: Sequence[Path], correction: str, tolerances: Tolerances
) -> _RunComparison:
    """Compare every metric that the runs share."""
    if len(folders) < 2:
        remedy = "name a second run, or --reference children/a3"
        raise Contradiction("a single run cannot be compared", remedy=remedy)
    labels, runs = label_runs(folders), [*map(read_run, folders)]
    frames = [*map(read_frames, labels, runs)]
    # the newest run says which direction is better
    definitions = {title: each for run in runs for title, each in collect_definitions(run).items()}
    tolerances.require_known(name for metric in definitions.values() for name in metric.names)
    pairs = [(pair.a, pair.b) for pair in pair_runs(frames)] if tolerances.tolerances else []
    worse = [
        row
        for pair in pairs
        for row in (
            *find_worse_values(merge_metrics(*pair), definitions, tolerances),
            *find_missing_values(pair, definitions, tolerances),
        )
    ]
    ungated = [
        title
        for title, metric in definitions.items()
        if tolerances.tolerances and math.isinf(tolerances.find_limit(metric.names))
    ]
    return _RunComparison(
        frames,
        compare_runs(frames, correction=correction),
        compare_gaps(frames, correction=correction),
        worse,
        correction,
        definitions,
        ungated,
    )


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


@dataclass(frozen=True, eq=False)
class _PublishedComparison:
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
            notes = [f"Within: the difference is at most {self.limits}.", *remarks]
            grid = build_reference_table(self.reference, table, notes)
            print_grid(replace(grid, title=f"{label}: {grid.title}"))

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


def _compare_with_published(
    folders: Sequence[Path], reference: str, tolerances: Tolerances, default: float = 0.01
) -> _PublishedComparison:
    """Compare runs with published values; ``default`` is the tolerance of ``within``."""
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
    return _PublishedComparison(reference, runs, tables, worse, tolerances.describe(default))


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


MOST_MODELS = 3
"""The maximum number of models that ``recbias runs`` names for a run."""

Reference: TypeAlias = Annotated[
    str | None, typer.Option(help="Published results to compare with: children/a3.")
]


def report(
    run: RunName,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            help="Formats, separated by commas: csv,json,md,html,latex,card,card_hub,card_ll144,"
            "card_eu,pdf,png.",
        ),
    ] = "csv,json,md,html,latex",
    reference: Reference = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest difference that counts as agreement.")
    ] = 0.01,
    track: Annotated[
        str | None, typer.Option(help="Log the run to mlflow or wandb too.", metavar="TRACKER")
    ] = None,
    out: Out = Path("results"),
) -> None:
    """Write the reports of a finished run again."""
    with report_errors():
        from recbias.core.packages import TRACKERS
        from recbias.reports.trackers import track_run
        from recbias.reports.write import write_reports

        if track is not None and track not in TRACKERS:
            message, remedy = f"must be one of {', '.join(TRACKERS)}", suggest(track, TRACKERS)
            raise UnknownName(message, where="--track", remedy=remedy)
        folder, names = find_run(run, out), [name.strip() for name in formats.split(",")]
        for path in write_reports(folder, formats=names, reference=reference, tolerance=tolerance):
            print_line(path, longest=None)
        if track is not None:
            track_run(folder, track)


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="A B ...", help="Run folders, or names of experiments."),
    ],
    reference: Reference = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[METRIC=]X",
            help="Exit with 3 if a value is worse by more than X (with --reference: differs by "
            "more). Repeatable: --fail-over 0.05 --fail-over nDCG=0.01.",
        ),
    ] = None,
    as_json: AsJson = False,
    correction: Annotated[
        str, typer.Option(help="Correction for multiple tests: none, bonferroni, holm or bh.")
    ] = "bonferroni",
    out: Out = Path("results"),
) -> None:
    """Compare runs by paired tests, or with published results."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        tolerances = Tolerances([*map(parse_tolerance, fail_over or ())])
        folders = [find_run(run, out) for run in runs]
        comparison = (
            _compare_side_by_side(folders, correction, tolerances)
            if reference is None
            else _compare_with_published(folders, reference, tolerances)
        )
        if as_json:
            document |= {"folders": [*map(str, folders)], **comparison.as_json()}
        else:
            with allow_closed_output():
                comparison.print()
        for line in comparison.explain_excesses():
            print_line(line, to_stderr=True)
        if comparison.worse:
            raise typer.Exit(OUT_OF_TOLERANCE)


def runs(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Only the runs of this experiment.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """List the runs of a results folder, the newest first."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias.core.context import collect_warnings
        from recbias.reports.run import summarize_runs

        with collect_warnings() as warnings:
            found = summarize_runs(out)
        for warning in warnings:
            print_line(f"warning: {warning}", to_stderr=True)
        rows = _select_experiment(found, name, out)
        if as_json:
            records = [{**row, "folder": str(row["folder"])} for row in rows]
            document |= {"runs": records, "warnings": warnings}
        else:
            _show_runs(rows, out)


def _select_experiment(
    rows: Sequence[Mapping[str, Any]], name: str | None, out: Path
) -> list[Mapping[str, Any]]:
    """Return the runs of an experiment; all of them if it is None."""
    names = {str(row["name"]) for row in rows}
    if name is None:
        return [*rows]
    chosen = [row for row in rows if normalize_name(row["name"]) == normalize_name(name)]
    if not chosen:
        remedy = suggest(name, names) if names else f"{out} has no finished run"
        raise UnknownName(f"{out} has no run of {name!r}", remedy=remedy)
    return chosen


def _show_runs(rows: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Print one row for each run: its experiment, id, start, duration, models and failures."""
    if not rows:
        print_line(f"{out} has no finished run: recbias run SPEC writes one")
        return
    print_rows(
        ("name", "run", "started", "took", "models", "failed"),
        [
            (
                row["name"],
                row["run"],
                f"{datetime.fromisoformat(row['started']):%Y-%m-%d %H:%M}",
                format_duration(row["seconds"]),
                _name_models(row["models"]),
                _count_failures(row),
            )
            for row in rows
        ],
        title=f"{out}: {format_count(len(rows), 'run')}, the newest first",
        notes=(f"Started: UTC. The folder of a run is {out / 'NAME' / 'RUN'}.",),
    )


def _name_models(labels: Sequence[str]) -> str:
    """Return the first models of a run, and the number of the others."""
    if len(labels) <= MOST_MODELS:
        return ", ".join(labels)
    shown = labels[: MOST_MODELS - 1]
    return f"{', '.join(shown)} and {len(labels) - len(shown)} more"


def _count_failures(row: Mapping[str, Any]) -> str:
    """Return the numbers of failed stages and checks; blank if there are none."""
    counts = {"stage": row["failures"], "check": row["failed_checks"]}
    return ", ".join(format_count(count, noun) for noun, count in counts.items() if count)
