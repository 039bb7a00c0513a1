"""``recbias compare`` and ``recbias power``: the tests between runs, and what a run could see."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from recbias import api
from recbias.cli.output import OUT_OF_TOLERANCE, Answer, Out, Part, command, select_first
from recbias.core.errors import Contradiction, MissingRun, MixedRuns, UnknownName
from recbias.core.files import has_file, to_local_path
from recbias.core.text import normalize_name, suggest
from recbias.reports.published import (
    build_reference_table,
    compare_published,
    list_remarks,
    load_published,
)
from recbias.reports.run import read_run, to_records
from recbias.reports.views import Definition, collect_definitions, format_title
from recbias.reports.wording import (
    Cell,
    add_places,
    format_count,
    format_p_value,
    format_value,
    interval_cell,
    pick,
    tabulate,
)
from recbias.reports.wording import Table as Grid
from recbias.runs.compare import (
    Tolerances,
    compare_gaps,
    compare_runs,
    explain_distance,
    explain_excess,
    find_distant_values,
    find_missing_values,
    find_worse_values,
    is_incomparable,
    label_runs,
    list_published_names,
    pair_runs,
    parse_tolerances,
    read_frames,
)
from recbias.runs.power import count_labels
from recbias.runs.power import power as compute_power
from recbias.runs.tables import find_run

_FORMATS: Mapping[str, Callable[[float, int], str]] = {
    "value": format_value,
    "count": lambda value, _: f"{value:,.0f}",
    "p": lambda value, _: format_p_value(value),
}


def _show(kind: str, name: str) -> Callable[[Mapping[str, Any]], Cell]:
    """Return a column of numbers of a kind of ``_FORMATS``, blank where they are undefined."""

    def show(row: Mapping[str, Any]) -> Cell:
        value = row[name]
        is_blank = math.isnan(value)
        return Cell("" if is_blank else _FORMATS[kind](value, row["places"]), value)

    return show


def _split_keys(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> tuple[list[str], str]:
    """Return the names of which the rows differ, and the others in words: `` (seed 42)``."""
    values = {name: {str(row[name]) for row in rows} for name in names}
    constants = [f"{name} {min(texts)}" for name, texts in values.items() if len(texts) == 1]
    varying = [name for name, texts in values.items() if len(texts) > 1]
    return varying, f" ({', '.join(constants)})" if constants else ""


# ---- compare ----


@command
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="A B ...")],
    reference: str | None = None,
    fail_over: Annotated[list[str] | None, typer.Option(metavar="[METRIC=]X")] = None,
    correction: str = "bonferroni",
    out: Out = Path("results"),
) -> Answer:
    """Compare runs by paired tests, or with published results.

    Args:
        runs: Run folders, or names of experiments.
        reference: Published results to compare with: children/a3.
        fail_over: Exit with 3 if a value is worse by more than X (with --reference: differs by
            more). Repeatable: --fail-over 0.05 --fail-over nDCG=0.01.
        correction: Correction for multiple tests: none, bonferroni, holm or bh.
    """
    tolerances = parse_tolerances(fail_over or ())
    folders = [find_run(run, out) for run in runs]
    if reference is None:
        answer = _compare_side_by_side(folders, correction, tolerances)
    else:
        answer = _compare_with_published(folders, reference, tolerances)
    document = {"folders": [*map(str, folders)], "runs": label_runs(folders), **answer.document}
    if not tolerances.limits:
        return replace(answer, document=document)
    n, code, verdict = len(answer.notes), 0, "PASS: no value is out of tolerance"
    if n:
        code, verdict = OUT_OF_TOLERANCE, f"FAIL: {format_count(n, 'value')} {answer.notes[0]}"
    return replace(answer, document=document, shown=[verdict, *answer.shown], code=code)


def _compare_side_by_side(
    folders: Sequence[Path], correction: str, tolerances: Tolerances
) -> Answer:
    """Compare every metric that the runs share."""
    if len(folders) < 2:
        remedy = "name a second run, or --reference children/a3"
        raise Contradiction("a single run cannot be compared", remedy=remedy)
    labels, runs = label_runs(folders), [*map(read_run, folders)]
    pairs = pair_runs([*map(read_frames, labels, runs)])
    # the newest run says which direction is better
    definitions = {title: each for run in runs for title, each in collect_definitions(run).items()}
    tolerances.require_known(name for metric in definitions.values() for name in metric.names)
    worse: list[dict[str, Any]] = []
    ungated: list[str] = []
    if tolerances.limits:
        for pair in pairs:
            worse += find_worse_values(pair, definitions, tolerances)
            worse += find_missing_values(pair, definitions, tolerances)
        ungated = [
            title
            for title, metric in definitions.items()
            if math.isinf(tolerances.find_limit(metric.names))
        ]
    values = compare_runs(pairs, correction=correction)
    gaps = compare_gaps(pairs, correction=correction)
    unchanged = sum(len(pair.rows) for pair in pairs) - len(values)
    excluded: list[dict[str, Any]] = [
        {"run": run.label, "lacking": other.label, "values": n}
        for pair in pairs
        for run, other in ((pair.a, pair.b), (pair.b, pair.a))
        if (n := len(run.metrics) - len(pair.rows)) > 0
    ]
    remarks = [text for pair in pairs for text in pair.describe_differences()]
    omitted = [
        f"Excluded: {format_count(row['values'], 'value')} of {row['run']} that {row['lacking']} "
        "lacks."
        for row in excluded
    ]
    if unchanged > 0:
        text = "with the same address in both runs"
        omitted.insert(0, f"Unchanged: {format_count(unchanged, 'value')} {text}.")
    omitted += remarks
    if ungated:
        headings = (definitions[title].heading for title in ungated)
        omitted.append(f"No tolerance given for: {'; '.join(headings)}.")
    shown: list[Part] = [f"{', '.join(labels)}: no value that the runs share has changed"]
    shown += omitted
    if len(values):
        notes = [*_explain(values, "the later run minus the earlier one", correction), *omitted]
        shown = [_tabulate_changes("value", values, labels, definitions, notes)]
    if len(gaps):
        text = "gap of the later run (one group minus another) minus gap of the earlier one"
        notes = [*_explain(gaps, text, correction)]
        shown.append(_tabulate_changes("gap", gaps, labels, definitions, notes))
    document = {
        "correction": correction,
        "values": to_records(values),
        "gaps": to_records(gaps),
        "unchanged": unchanged,
        "excluded": excluded,
        "remarks": remarks,
        "out_of_tolerance": worse,
        "without_tolerance": ungated,
    }
    return Answer(
        document, shown, [explain_excess(row, definitions[row["metric"]]) for row in worse]
    )


def _tabulate_changes(
    unit: str,
    table: pd.DataFrame,
    labels: Sequence[str],
    definitions: Mapping[str, Definition],
    notes: Sequence[str],
) -> Grid:
    """Return the values or gaps side by side, with the constant columns in the title."""
    rows = to_records(table.assign(n=table["n"].where(table["p"].notna())))
    rows = add_places(rows, ("value_a", "value_b"))
    for row in rows:
        metric = definitions[format_title(row["metric"], float(row["k"] or "nan"))]
        row["metric"] = metric.describe_value(row["group"], row["target"])
    keys, suffix = _split_keys(rows, ("dataset", "seed", "fold"))
    sides, pair = (
        ([*labels], []) if len(labels) == 2 else (["value of a", "value of b"], ["a", "b"])
    )
    return tabulate(
        f"{', '.join(labels)}: {format_count(len(rows), unit)}{suffix}",
        rows,
        {
            **pick(*keys, "model", "metric", *pair),
            sides[0]: _show("value", "value_a"),
            sides[1]: _show("value", "value_b"),
            "difference": _show("value", "difference"),
            "95% interval": lambda row: interval_cell(
                row["ci_low"], row["ci_high"], row["places"]
            ),
            "n": _show("count", "n"),
            "p": _show("p", "p"),
            "p adjusted": _show("p", "p_adjusted"),
            **pick("test"),
        },
        notes,
    ).without_blanks(*sides, "difference")


def _explain(table: pd.DataFrame, difference: str, correction: str) -> Iterator[str]:
    """Yield what the columns of a table of changes mean."""
    tests = int(table["family_size"].max())
    adjusted = f" p adjusted: {correction} over {format_count(tests, 'test')}." if tests else ""
    yield f"Difference: {difference}, over the n units that both have.{adjusted}"
    of_one_run = pd.concat([table.groupby(side)[f"only_{side}"].max() for side in "ab"])
    others = of_one_run.groupby(level=0, sort=False).max()
    if left_out := [f"{format_count(n, 'unit')} of {run}" for run, n in others.items() if n]:
        yield f"Left out, as only one run has them: up to {' and '.join(left_out)}."
    differ = is_incomparable(table)
    if differ.any():
        yield (
            "No difference: the value is of all queries together, or of groups whose users "
            "are not stored, and the queries of the runs differ."
        )
    if (table["p"].isna() & ~differ).any():
        yield (
            "No p: neither units nor bootstrap samples of the value are of the same queries in "
            "both runs, another group is higher, or all units differ by the same amount."
        )


def _compare_with_published(
    folders: Sequence[Path], reference: str, tolerances: Tolerances
) -> Answer:
    """Compare runs with published values; ``within`` is by the tolerance of all metrics."""
    values: list[dict[str, Any]] = []
    worse: list[dict[str, Any]] = []
    shown, names = list[Part](), list[str]()
    limit = tolerances.find_limit([], 0.01)
    for label, run in zip(label_runs(folders), map(read_run, folders), strict=True):
        table = compare_published(run, reference, tolerance=limit)
        if table.empty:
            published = load_published(reference)
            message = f"{reference} has no value for any model and metric of {label}"
            metrics, systems = (
                ", ".join(published[name].unique()) for name in ("metric", "system")
            )
            raise MixedRuns(message, remedy=f"it has {metrics} of {systems}")
        names += list_published_names(table)
        values += ({"run": label, **row} for row in to_records(table))
        worse += ({"run": label, **row} for row in find_distant_values(table, tolerances))
        notes = [f"Within: the difference is at most {limit:g}."]
        notes += list_remarks(run, str(table["table"].iloc[0]))
        grid = build_reference_table(reference, table, notes)
        shown.append(replace(grid, title=f"{label}: {grid.title}"))
    tolerances.require_known(names)
    document = {"reference": reference, "values": values, "out_of_tolerance": worse}
    return Answer(document, shown, [*map(explain_distance, worse)])


# ---- power ----

_MOST_ROWS = 24
"""The maximum number of comparisons that are printed."""


@command
def power(
    run: Annotated[str, typer.Argument(metavar="SPEC|RUN")],
    difference: float | None = None,
    half_width: float | None = None,
    power: Annotated[float, typer.Option("--power")] = 0.8,
    alpha: float | None = None,
    metric: list[str] | None = None,
    model: list[str] | None = None,
    out: Out = Path("results"),
) -> Answer:
    """Print what a run could have seen, and the units one needs.

    Args:
        run: A spec, a run folder, or an experiment's name.
        difference: The difference to find: 0.01. Prints how many units.
        half_width: Print the human labels that intervals of corrected values need.
        power: The chance of a significant result.
        alpha: The level before correction; by default the run's.
        metric: Only this metric: nDCG@10. Repeatable.
        model: Only comparisons of this model. Repeatable.
    """
    folder = _find_pilot(run, out)
    name = folder.parent.name
    if half_width is not None:
        rows = to_records(count_labels(folder, half_width))
        return Answer(
            {"asked": half_width, "rows": rows}, [_tabulate_labels(rows, half_width, name)]
        )
    rows = to_records(compute_power(folder, difference, power=power, alpha=alpha))
    definitions = collect_definitions(read_run(folder))

    def name_metric(row: Mapping[str, Any]) -> Sequence[str]:
        title = format_title(row["metric"], row["k"])
        return (title, *definitions[title].names, definitions[title].name)

    def name_models(row: Mapping[str, Any]) -> Sequence[str]:
        return (row["a"], row["b"]) if row["between"] == "models" else (row["model"],)

    rows = _select(rows, name_metric, metric or (), "metric")
    rows = _select(rows, name_models, model or (), "model")
    grid = _tabulate_power(name, rows, definitions, _explain_power(rows, difference, power))
    shown = select_first(grid, _MOST_ROWS, "--metric and --model select, --json has all")
    return Answer({"asked": difference, "power": power, "rows": rows}, [shown])


def _find_pilot(run: str, out: Path) -> Path:
    """Return a run folder, or the latest run of a spec or experiment."""
    path = to_local_path(run)
    if path.is_dir() or not has_file(path):
        return find_run(run, out)
    name = api.read_experiment(path).name
    try:
        return find_run(name, out)
    except MissingRun:
        message = f"{name} has no finished run in {out}, which gives the variance"
        remedy = f"run a pilot: recbias run {run} --limit 200"
        raise MissingRun(message, remedy=remedy) from None


def _select(
    rows: Sequence[dict[str, Any]],
    list_names: Callable[[Mapping[str, Any]], Sequence[str]],
    chosen: Sequence[str],
    kind: str,
) -> list[dict[str, Any]]:
    """Return the rows of which one of the names is chosen; all if none is."""
    names = [list_names(row) for row in rows]
    keys = [{*map(normalize_name, own)} for own in names]
    for text in chosen:
        if not any(normalize_name(text) in own for own in keys):
            message = f"the run has no comparison of the {kind} {text!r}"
            remedy = suggest(text, {own[0] for own in names})
            raise UnknownName(message, where=f"--{kind}", remedy=remedy)
    wanted = {*map(normalize_name, chosen)}
    return [row for row, own in zip(rows, keys, strict=True) if not wanted or wanted & own]


def _tabulate_power(
    name: str,
    found: Sequence[Mapping[str, Any]],
    definitions: Mapping[str, Definition],
    notes: Iterable[str],
) -> Grid:
    """Return a row for each comparison, those of models over all queries first."""
    tests: dict[Any, set[str]] = defaultdict(set)
    rows = []
    for row in found:
        metric = definitions[format_title(row["metric"], row["k"])]
        rank = 2 if metric.gap or row["group"] else 0
        title = metric.describe_value(row["group"], row["target"])
        rows.append({**row, "rank": rank if row["between"] == "models" else 1, "title": title})
        tests[row["metric"], row["between"], row["model"]].add(row["test"])
    rows = add_places(rows, ("difference", "detectable"))
    rows.sort(key=lambda row: row["rank"])
    varying, suffix = _split_keys(rows, ("dataset", "seed", "fold", "unit"))
    test = ["test"] if any(len(names) > 1 for names in tests.values()) else []
    return tabulate(
        f"{name}: {format_count(len(rows), 'row')}{suffix}",
        rows,
        {
            **pick(*varying),
            "metric": lambda row: row["title"],
            **pick("model", *test, "a", "b", "given"),
            "n": _show("count", "n"),
            "observed": _show("value", "difference"),
            "detectable": _show("value", "detectable"),
            "needed": _format_needed,
            **pick("remark"),
        },
        notes,
    ).without_blanks()


def _format_needed(row: Mapping[str, Any]) -> Cell:
    cell = _show("count", "needed")(row)
    if math.isnan(row["needed_a"]):
        return cell
    return replace(cell, text=f"{cell.text} ({row['needed_a']:,.0f} + {row['needed_b']:,.0f})")


def _explain_power(
    found: Sequence[Mapping[str, Any]], difference: float | None, power: float
) -> Iterator[str]:
    """Yield what the columns of the table mean."""
    share, table = f"{power:.0%} of such runs", pd.DataFrame(found)
    yield f"Detectable: the smallest true difference that a test of this run finds in {share}."
    for correction, rows in table.groupby("correction"):
        levels = ", ".join(f"{level:.2g}" for level in sorted({*rows["alpha"]}))
        how = ", not corrected" if correction == "none" else ", alpha divided by the family size"
        if correction not in {"none", "bonferroni"}:
            how += f", a bound for {correction}"
        yield f"Level of a single test: {levels}{how}."
    if difference is not None:
        text = f"Needed: the number of units needed to find a true difference of {difference:g}"
        yield f"{text} in {share}; for groups, of both (a + b) in the shares of the run."
    if (table["given"] != "").any():
        yield "Given: what stays as in this run while the other number changes."


def _tabulate_labels(rows: Sequence[Mapping[str, Any]], half_width: float, name: str) -> Grid:
    """Return how many human labels each corrected value needs."""
    return tabulate(
        f"{name}: human labels for intervals of ± {half_width:g}",
        [{**row, "places": 4} for row in rows],
        {
            **pick("metric", "model"),
            "items": _show("count", "items"),
            "audited": _show("count", "audited"),
            "half width": _show("value", "half_width"),
            "needed": _show("count", "needed"),
            **pick("remark"),
        },
        ["Needed: audited items, of those that the value depends on, with the users of the run."],
    ).without_blanks()
