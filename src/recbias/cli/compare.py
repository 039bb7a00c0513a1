"""``recbias compare`` and ``recbias power``: the tests between runs, and what a run could see."""

from __future__ import annotations

import math
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
    count_decimals,
    format_count,
    format_p_value,
    interval_cell,
    number_cell,
    pick,
    tabulate,
)
from recbias.reports.wording import Table as Grid
from recbias.runs.compare import (
    compare_gaps,
    compare_runs,
    is_incomparable,
    label_runs,
    pair_runs,
    read_frames,
)
from recbias.runs.power import count_labels
from recbias.runs.power import power as compute_power
from recbias.runs.tables import find_run
from recbias.runs.tolerances import (
    Tolerances,
    explain_distance,
    explain_excess,
    find_distant_values,
    find_missing_values,
    find_worse_values,
    list_published_names,
    parse_tolerances,
)


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
    code = OUT_OF_TOLERANCE if answer.notes else 0
    return replace(answer, document=document, code=code)


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
        omitted.append(f"Without a tolerance: {'; '.join(headings)}.")
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
    rows = to_records(table)
    for row in rows:
        metric = definitions[format_title(row["metric"], float(row["k"] or "nan"))]
        row["metric"] = metric.describe_value(row["group"], row["target"])
        row["places"] = count_decimals([row["value_a"], row["value_b"]])
    keys, suffix = _split_keys(rows, ("dataset", "seed", "fold"))
    keys += ["model", "metric"]
    sides = [*labels]
    if len(labels) > 2:
        sides, keys = ["value of a", "value of b"], [*keys, "a", "b"]

    def show_value(name: str) -> Any:
        return lambda row: number_cell(row[name], row["places"])

    def show_test(make: Callable[[Mapping[str, Any]], Cell | str]) -> Any:
        return lambda row: "" if math.isnan(row["p"]) else make(row)

    return tabulate(
        f"{', '.join(labels)}: {format_count(len(rows), unit)}{suffix}",
        rows,
        {
            **pick(*keys),
            sides[0]: show_value("value_a"),
            sides[1]: show_value("value_b"),
            "difference": show_value("difference"),
            "95% interval": lambda row: interval_cell(
                row["ci_low"], row["ci_high"], row["places"]
            ),
            "n": show_test(lambda row: Cell(f"{row['n']:,}", row["n"])),
            "p": show_test(lambda row: Cell(format_p_value(row["p"]), row["p"])),
            "p adjusted": show_test(
                lambda row: Cell(format_p_value(row["p_adjusted"]), row["p_adjusted"])
            ),
            "test": show_test(lambda row: str(row["test"])),
        },
        notes,
    ).without_blanks()


def _explain(table: pd.DataFrame, difference: str, correction: str) -> Iterator[str]:
    """Yield what the columns of a table of changes mean."""
    tests = int(table["family_size"].max())
    adjusted = f", p adjusted: {correction} over {format_count(tests, 'test')}" if tests else ""
    yield f"Difference: {difference}, over the n units that both have{adjusted}."
    of_one_run = pd.concat([table.groupby(side)[f"only_{side}"].max() for side in "ab"])
    others = of_one_run.groupby(level=0, sort=False).max()
    if left_out := [f"{format_count(n, 'unit')} of {run}" for run, n in others.items() if n]:
        yield f"Left out, as only one run has them: up to {' and '.join(left_out)}."
    differ = is_incomparable(table)
    if differ.any():
        yield (
            "No difference (n/a): the value is of all queries together, or of groups whose users "
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
    table = compute_power(folder, difference, power=power, alpha=alpha)
    definitions = collect_definitions(read_run(folder))
    rows = to_records(table)
    for row in rows:
        row["title"] = format_title(row["metric"], row["k"])
    metrics = [
        (row["title"], *definitions[row["title"]].names, definitions[row["title"]].name)
        for row in rows
    ]
    models = [
        (row["a"], row["b"]) if row["between"] == "models" else (row["model"],) for row in rows
    ]
    is_chosen = [
        all(each)
        for each in zip(
            _choose(metric or (), metrics, "metric"),
            _choose(model or (), models, "model"),
            strict=True,
        )
    ]
    notes = _explain_power(table[is_chosen], difference, power)
    chosen = [row for row, is_in in zip(rows, is_chosen, strict=True) if is_in]
    grid = _tabulate_power(name, chosen, definitions, notes)
    shown = select_first(grid, _MOST_ROWS, "--metric and --model select, --json has all")
    document = {"asked": difference, "power": power, "rows": to_records(table[is_chosen])}
    return Answer(document, [shown])


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


def _choose(chosen: Sequence[str], names: Sequence[Sequence[str]], kind: str) -> list[bool]:
    """Return of which rows one of the names is chosen; all if none is."""
    keys = [{*map(normalize_name, own)} for own in names]
    for text in chosen:
        if not any(normalize_name(text) in row for row in keys):
            message = f"the run has no comparison of the {kind} {text!r}"
            remedy = suggest(text, {own[0] for own in names})
            raise UnknownName(message, where=f"--{kind}", remedy=remedy)
    wanted = {*map(normalize_name, chosen)}
    return [not wanted or bool(wanted & row) for row in keys]


def _tabulate_power(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    definitions: Mapping[str, Definition],
    notes: Iterable[str],
) -> Grid:
    """Return a row for each comparison, those of models over all queries first."""

    def rank(row: Mapping[str, Any]) -> int:
        if row["between"] != "models":
            return 1
        return 2 if definitions[row["title"]].gap or row["group"] else 0

    rows = sorted(rows, key=rank)
    numbers: dict[str, list[float]] = {}
    for row in rows:
        numbers.setdefault(row["metric"], []).extend((row["difference"], row["detectable"]))
    places = {metric: count_decimals(values) for metric, values in numbers.items()}
    varying, suffix = _split_keys(rows, ("dataset", "seed", "fold", "unit"))
    tests: dict[Any, set[str]] = {}
    for row in rows:
        tests.setdefault((row["metric"], row["between"], row["model"]), set()).add(row["test"])
    test = ["test"] if any(len(names) > 1 for names in tests.values()) else []
    return tabulate(
        f"{name}: {format_count(len(rows), 'row')}{suffix}",
        rows,
        {
            **pick(*varying),
            "metric": lambda row: definitions[row["title"]].describe_value(
                row["group"], row["target"]
            ),
            **pick("model", *test, "a", "b", "given"),
            "n": lambda row: Cell(f"{row['n']:,}", row["n"]),
            "observed": lambda row: number_cell(row["difference"], places[row["metric"]]),
            "detectable": lambda row: _format_known(row["detectable"], places[row["metric"]]),
            "needed": _format_needed,
            **pick("remark"),
        },
        notes,
    ).without_blanks()


def _format_known(value: float, places: int) -> Cell:
    return Cell("") if math.isnan(value) else number_cell(value, places)


def _format_needed(row: Mapping[str, Any]) -> Cell:
    if math.isnan(row["needed"]):
        return Cell("")
    total = f"{row['needed']:,.0f}"
    if not math.isnan(row["needed_a"]):
        total += f" ({row['needed_a']:,.0f} + {row['needed_b']:,.0f})"
    return Cell(total, row["needed"])


def _explain_power(table: pd.DataFrame, difference: float | None, power: float) -> Iterator[str]:
    """Yield what the columns of the table mean."""
    share = f"{power:.0%} of such runs"
    yield f"Detectable: the smallest true difference that a test of this run finds in {share}."
    for correction, rows in table.groupby("correction"):
        levels = ", ".join(f"{level:.2g}" for level in sorted({*rows["alpha"]}))
        how = ", not corrected" if correction == "none" else ", alpha divided by the family size"
        if correction not in {"none", "bonferroni"}:
            how += f", a bound for {correction}"
        yield f"Level of a single test: {levels}{how}."
    if difference is not None:
        text = f"Needed: the number of units that finds a true difference of {difference:g}"
        yield f"{text} in {share}; for groups, of both (a + b) in the shares of the run."
    if (table["given"] != "").any():
        yield "Given: what stays as in this run while the other number changes."


def _tabulate_labels(rows: Sequence[Mapping[str, Any]], half_width: float, name: str) -> Grid:
    """Return how many human labels each corrected value needs."""
    return tabulate(
        f"{name}: human labels for intervals of ± {half_width:g}",
        rows,
        {
            **pick("metric", "model"),
            "items": lambda row: Cell(str(row["items"]), row["items"]),
            "audited": lambda row: Cell(str(row["audited"]), row["audited"]),
            "half width": lambda row: number_cell(row["half_width"], 4),
            "needed": lambda row: _format_known(row["needed"], 0),
            **pick("remark"),
        },
        ["Needed: audited items, of those that the value depends on, with the users of the run."],
    ).without_blanks()
