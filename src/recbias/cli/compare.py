"""``recbias compare``, ``report`` and ``runs``, and the tables of a comparison."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import pandas as pd
import typer

from recbias.cli.output import (
    OUT_OF_TOLERANCE,
    AsJson,
    Out,
    RunName,
    allow_closed_output,
    make_grid,
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
from recbias.reports.wording import Table as Grid
from recbias.reports.wording import (
    count_decimals,
    format_count,
    format_duration,
    format_interval,
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
    describe_differences,
    is_incomparable,
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
    "welch_t": "(gaps of two groups) Welch's t-test",
    "gap_change": "(gaps of several groups) simultaneous bounds",
}
"""The tests in words."""

_NUMERIC = ("n", "p", "p adjusted", "difference", "95% interval")


class _Comparison(NamedTuple):
    """What ``--json`` and the terminal show, and a sentence on each value out of tolerance."""

    document: dict[str, Any]
    shown: Sequence[Grid | str]
    excesses: Sequence[str]


def _compare_side_by_side(
    folders: Sequence[Path], correction: str, tolerances: Tolerances
) -> _Comparison:
    """Compare every metric that the runs share."""
    if len(folders) < 2:
        remedy = "name a second run, or --reference children/a3"
        raise Contradiction("a single run cannot be compared", remedy=remedy)
    labels, runs = label_runs(folders), [*map(read_run, folders)]
    frames = [*map(read_frames, labels, runs)]
    # the newest run says which direction is better
    definitions = {title: each for run in runs for title, each in collect_definitions(run).items()}
    tolerances.require_known(name for metric in definitions.values() for name in metric.names)
    pairs = pair_runs(frames) if tolerances.tolerances else []
    worse = [
        row
        for pair in pairs
        for row in (
            *find_worse_values(pair.merge(), definitions, tolerances),
            *find_missing_values(pair, definitions, tolerances),
        )
    ]
    ungated = [
        title
        for title, metric in definitions.items()
        if tolerances.tolerances and math.isinf(tolerances.find_limit(metric.names))
    ]
    values = compare_runs(frames, correction=correction)
    gaps = compare_gaps(frames, correction=correction)
    shared = sum(len(merge_metrics(*pair)) for pair in combinations(frames, 2))
    excluded, unchanged = _list_excluded(frames), shared - len(values)
    omitted = _explain_omissions(excluded, unchanged)
    remarks = [text for pair in combinations(frames, 2) for text in describe_differences(*pair)]
    omitted += remarks
    if ungated:
        headings = (definitions[title].heading for title in ungated)
        omitted.append(f"Without a tolerance: {'; '.join(headings)}.")
    shown: list[Grid | str] = []
    if len(values):
        notes = [*_explain_tests(values, correction), *omitted]
        shown.append(_tabulate(values, labels, definitions, notes, unit="value"))
    else:
        shown += [f"{', '.join(labels)}: {_explain_no_change(excluded)}", *omitted]
    if len(gaps):
        notes = _explain_gaps(gaps, correction)
        shown.append(_tabulate(gaps, labels, definitions, notes, unit="gap"))
    document = {
        "runs": labels,
        "correction": correction,
        "values": to_records(values),
        "gaps": to_records(gaps),
        "unchanged": unchanged,
        "excluded": excluded,
        "remarks": remarks,
        "out_of_tolerance": worse,
        "without_tolerance": ungated,
    }
    return _Comparison(
        document, shown, [explain_excess(row, definitions[row["metric"]]) for row in worse]
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


def _explain_omissions(excluded: Sequence[Mapping[str, Any]], unchanged: int) -> list[str]:
    """Return which values are in no table."""
    notes = [
        f"Excluded: {format_count(row['values'], 'value')} of {row['run']} that "
        f"{row['lacking']} lacks."
        for row in excluded
    ]
    values = format_count(unchanged, "value")
    return [
        *[f"Unchanged: {values} with the same address in both runs."] * (unchanged > 0),
        *notes,
    ]


def _explain_no_change(excluded: Sequence[Mapping[str, Any]]) -> str:
    """Return what to say of runs of which no shared value changed."""
    missing = [
        f"{format_count(row['values'], 'result')} of {row['run']} without a counterpart in "
        f"{row['lacking']}"
        for row in excluded
    ]
    changed = f"no value that both have changed; {', '.join(missing)}"
    return changed if missing else "nothing changed"


def _tabulate(
    table: pd.DataFrame,
    labels: Sequence[str],
    definitions: Mapping[str, Definition],
    notes: Sequence[str],
    *,
    unit: str,
) -> Grid:
    """Return the values or gaps side by side, with the constant columns in the title."""
    rows = to_records(table)
    values = {name: {str(row[name]) for row in rows} for name in ("dataset", "seed", "fold")}
    constants = [f"{name} {min(texts)}" for name, texts in values.items() if len(texts) == 1]
    suffix = f" ({', '.join(constants)})" if constants else ""
    has_pairs = len(labels) > 2
    keys = [name for name, texts in values.items() if len(texts) > 1]
    keys += ["model", "metric", *(("a", "b") if has_pairs else ())]
    pair = ("value of a", "value of b") if has_pairs else labels
    size = ["n"] if _find_common_size(table) is None else []
    cells = []
    for row in rows:
        metric = definitions[format_title(row["metric"], float(row["k"] or "nan"))]
        texts = {**row, "metric": metric.describe_value(row["group"], row["target"])}
        places = count_decimals([row["value_a"], row["value_b"]])
        tests = [
            *(
                format_interval(row["ci_low"], row["ci_high"], places),
                *[f"{row['n']:,}"] * len(size),
            ),
            *(format_p_value(row[p]) for p in ("p", "p_adjusted")),
        ]
        cells.append(
            [
                *(str(texts[name]) for name in keys),
                *(
                    format_value(row[side], places)
                    for side in ("value_a", "value_b", "difference")
                ),
                *([""] * len(tests) if math.isnan(row["p"]) else tests),
            ]
        )
    return make_grid(
        (*keys, *pair, "difference", "95% interval", *size, "p", "p adjusted"),
        cells,
        title=f"{', '.join(labels)}: {format_count(len(rows), unit)}{suffix}",
        numeric=(*_NUMERIC, *pair),
        notes=notes,
    )


def _find_common_size(table: pd.DataFrame) -> int | None:
    """Return the number of units if all tests have the same."""
    sizes = set(table.loc[table["p"].notna(), "n"])
    return int(sizes.pop()) if len(sizes) == 1 else None


def _explain_tests(table: pd.DataFrame, correction: str) -> list[str]:
    """Return what the columns of the table of ``compare_runs`` mean."""
    tests = int(table["family_size"].max())
    notes = ["Difference: the later run minus the earlier one, with its 95% interval."]
    if tests:
        size = _find_common_size(table)
        units = "the n units" if size is None else f"the {format_count(size, 'unit')}"
        names = [name for test, name in _TESTS.items() if test in {*table["test"]}]
        notes[0] += (
            f" p: {' or '.join(names)} over {units} that both runs have; "
            f"p adjusted: {correction} over {format_count(tests, 'test')}."
        )
    counts: Counter[str] = Counter()  # of units that only one run has
    for side in ("a", "b"):
        for run, n in table.groupby(side)[f"only_{side}"].max().items():
            counts[str(run)] = max(counts[str(run)], int(n))
    if others := [f"{format_count(n, 'unit')} of {run}" for run, n in counts.items() if n]:
        least, most = (table.loc[table["n"] > 0, "n"].agg(name) for name in ("min", "max"))
        n = format_count(most, "unit") if least == most else f"{least:,} to {most:,} units"
        left_out = " and ".join(others)
        notes.append(
            f"Values are over the {n} that both runs have; up to {left_out} are left out."
        )
    differ = is_incomparable(table)
    if differ.any():
        notes.append(
            "No difference (n/a): the value is of all queries together, or of groups whose users "
            "are not stored, and the queries of the runs differ."
        )
    if (table["p"].isna() & ~differ).any():
        notes.append(
            "No p: neither units nor bootstrap samples of the value are of the same queries in "
            "both runs, another group is higher, or all units differ by the same amount."
        )
    return notes


def _explain_gaps(table: pd.DataFrame, correction: str) -> list[str]:
    """Return what the columns of the table of ``compare_gaps`` mean."""
    tests = format_count(int(table["family_size"].max()), "test")
    return [
        "Gap: one group minus another. Difference: gap of the later run minus gap of the earlier.",
        (
            "p: t-test of the change of each unit, paired if both groups have the same units, "
            f"else Welch's; p adjusted: {correction} over {tests}."
        ),
    ]


def _compare_with_published(
    folders: Sequence[Path], reference: str, tolerances: Tolerances, default: float = 0.01
) -> _Comparison:
    """Compare runs with published values; ``default`` is the tolerance of ``within``."""
    values: list[dict[str, Any]] = []
    worse: list[dict[str, Any]] = []
    shown, names = list[Grid | str](), list[str]()
    labels = label_runs(folders)
    for label, run in zip(labels, map(read_run, folders), strict=True):
        table = _compare_published(label, run, reference, tolerances, default)
        names += list_published_names(table)
        values += ({"run": label, **row} for row in to_records(table))
        worse += ({"run": label, **row} for row in find_distant_values(table, tolerances))
        within = f"Within: the difference is at most {tolerances.describe(default)}."
        remarks = list_remarks(run, str(table["table"].iloc[0]))
        grid = build_reference_table(reference, table, [within, *remarks])
        shown.append(replace(grid, title=f"{label}: {grid.title}"))
    tolerances.require_known(names)
    document = {
        "runs": labels,
        "reference": reference,
        "values": values,
        "out_of_tolerance": worse,
    }
    return _Comparison(document, shown, [*map(explain_distance, worse)])


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
            document |= {"folders": [*map(str, folders)], **comparison.document}
        else:
            with allow_closed_output():
                for part in comparison.shown:
                    if isinstance(part, str):
                        print_line(part)
                    else:
                        print_grid(part, optional=("n", "p"))
        for line in comparison.excesses:
            print_line(line, to_stderr=True)
        if comparison.excesses:
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
                _name_models(row["models"], row["limit"]),
                _count_failures(row),
            )
            for row in rows
        ],
        title=f"{out}: {format_count(len(rows), 'run')}, the newest first",
        notes=(f"Started: UTC. The folder of a run is {out / 'NAME' / 'RUN'}.",),
    )


def _name_models(labels: Sequence[str], limit: int | None) -> str:
    """Return the first models of a run, the number of the others, and ``--limit``."""
    few = f" (--limit {limit})" if limit else ""
    if len(labels) <= MOST_MODELS:
        return ", ".join(labels) + few
    shown = labels[: MOST_MODELS - 1]
    return f"{', '.join(shown)} and {len(labels) - len(shown)} more{few}"


def _count_failures(row: Mapping[str, Any]) -> str:
    """Return the numbers of failed stages and checks; blank if there are none."""
    counts = {"stage": row["failures"], "check": row["failed_checks"]}
    return ", ".join(format_count(count, noun) for noun, count in counts.items() if count)
