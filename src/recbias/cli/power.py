"""``recbias power``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from recbias import api
from recbias.cli.output import AsJson, Out, open_document, print_grid, report_errors
from recbias.core.errors import MissingRun, UnknownName
from recbias.core.files import has_file, to_local_path
from recbias.core.text import normalize_name, suggest
from recbias.reports.run import read_run, to_records
from recbias.reports.views import Definition, collect_definitions, format_title
from recbias.reports.wording import Cell, count_decimals, format_count, number_cell, pick, tabulate
from recbias.reports.wording import Table as Grid
from recbias.runs.power import count_labels
from recbias.runs.power import power as compute_power
from recbias.runs.tables import find_run

MOST_ROWS = 24
"""The maximum number of comparisons that are printed."""

_SHARED = ("dataset", "seed", "fold", "unit")


def _tabulate_power(
    table: pd.DataFrame,
    definitions: Mapping[str, Definition],
    *,
    name: str,
    notes: Sequence[str],
) -> Grid:
    """Return a row for each comparison, those of models over all queries first.

    The title has the constant columns: `` (dataset demo, seed 42, fold 1, unit user)``.
    """
    rows = []
    for row in to_records(table):
        metric = definitions[format_title(row["metric"], row["k"])]
        is_part = row["between"] != "models" or bool(metric.gap or row["group"])
        rank = 2 if is_part and row["between"] == "models" else int(is_part)
        text = metric.describe_value(row["group"], row["target"])
        rows.append({**row, "rank": rank, "title": text})
    rows.sort(key=lambda row: row["rank"])
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["metric"], []).extend((row["difference"], row["detectable"]))
    places = {metric: count_decimals(numbers) for metric, numbers in values.items()}
    varying = [key for key in _SHARED if len({str(row[key]) for row in rows}) > 1]
    constants = [f"{key} {rows[0][key]}" for key in _SHARED if key not in varying]
    kinds = table.groupby(["metric", "between", "model"])["test"].nunique()
    tests = ["test"] if (kinds > 1).any() else []
    suffix = f" ({', '.join(constants)})" if constants else ""
    return tabulate(
        f"{name}: {format_count(len(rows), 'row')}{suffix}",
        rows[:MOST_ROWS],
        {
            **pick(*varying),
            "metric": lambda row: row["title"],
            **pick("model", *tests, "a", "b", "given"),
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


def _explain_power(table: pd.DataFrame, difference: float | None, power: float) -> list[str]:
    """Return what the columns of the tables mean."""
    share = f"{power:.0%} of such runs"
    notes = [
        f"Detectable: the smallest true difference that a test of this run finds in {share}.",
        *(_explain_level(str(name), rows) for name, rows in table.groupby("correction")),
    ]
    if difference is not None:
        text = f"Needed: the number of units that finds a true difference of {difference:g}"
        notes.append(f"{text} in {share}; for groups, of both (a + b) in the shares of the run.")
    if (table["given"] != "").any():
        notes.append("Given: what stays as in this run while the other number changes.")
    return notes


def _explain_level(correction: str, rows: pd.DataFrame) -> str:
    levels = ", ".join(f"{level:.2g}" for level in sorted({*rows["alpha"]}))
    if correction == "none":
        return f"Level of a single test: {levels}, not corrected."
    bound = "" if correction == "bonferroni" else f", which is a bound for {correction}"
    return f"Level of a single test: {levels} (alpha divided by the family size{bound})."


def power(
    run: Annotated[
        str,
        typer.Argument(metavar="SPEC|RUN", help="A spec, a run folder, or an experiment's name."),
    ],
    difference: Annotated[
        float | None, typer.Option(help="The difference to find: 0.01. Prints how many units.")
    ] = None,
    half_width: Annotated[
        float | None,
        typer.Option(help="Print the human labels that intervals of corrected values need."),
    ] = None,
    power: Annotated[
        float, typer.Option("--power", help="The chance of a significant result.")
    ] = 0.8,
    alpha: Annotated[
        float | None, typer.Option(help="The level before correction; by default the run's.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Only this metric: nDCG@10. Repeatable.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Only comparisons of this model. Repeatable.")
    ] = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """Print what a run could have seen, and the units one needs."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        folder = _find_pilot(run, out)
        if half_width is not None:
            rows = to_records(count_labels(folder, half_width))
            document |= {"asked": half_width, "rows": rows}
            if not as_json:
                print_grid(_tabulate_labels(rows, half_width, folder.parent.name))
            return
        table = compute_power(folder, difference, power=power, alpha=alpha)
        definitions = collect_definitions(read_run(folder))
        table = _select(table, metric or (), _list_metric_names(table, definitions), "metric")
        table = _select(table, model or (), _list_models(table), "model")
        if as_json:
            document |= {"asked": difference, "power": power, "rows": to_records(table)}
        else:
            notes = _explain_power(table, difference, power)
            if (n_more := len(table) - MOST_ROWS) > 0:
                more = format_count(n_more, "more row")
                notes.insert(0, f"{more}: --metric and --model select, --json has all.")
            name = folder.parent.name
            grid = _tabulate_power(table, definitions, name=name, notes=notes)
            print_grid(grid, optional=("observed",))


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


def _find_pilot(run: str, out: Path) -> Path:
    """Return a run folder, or the latest run of a spec or experiment."""
    if to_local_path(run).is_dir() or not has_file(to_local_path(run)):
        return find_run(run, out)
    name = api.read_experiment(to_local_path(run)).name
    try:
        return find_run(name, out)
    except MissingRun:
        message = f"{name} has no finished run in {out}, which gives the variance"
        remedy = f"run a pilot: recbias run {run} --limit 200"
        raise MissingRun(message, remedy=remedy) from None


def _select(
    table: pd.DataFrame,
    chosen: Sequence[str],
    names: Sequence[Sequence[str]],
    kind: str,
) -> pd.DataFrame:
    """Return the rows of which one of the names is chosen; all if none is."""
    keys = [{*map(normalize_name, own)} for own in names]
    for text in chosen:
        if not any(normalize_name(text) in row for row in keys):
            message = f"the run has no comparison of the {kind} {text!r}"
            remedy = suggest(text, {own[0] for own in names})
            raise UnknownName(message, where=f"--{kind}", remedy=remedy)
    wanted = {*map(normalize_name, chosen)}
    return table[[not wanted or bool(wanted & row) for row in keys]]


def _list_metric_names(
    table: pd.DataFrame, definitions: Mapping[str, Definition]
) -> list[tuple[str, ...]]:
    """Return the names of the metric of each row: ``nDCG@10``, ``nDCG``, with its settings."""
    titles = map(format_title, table["metric"], table["k"])
    return [(title, *definitions[title].names, definitions[title].name) for title in titles]


def _list_models(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the models that each row compares, or within which it compares groups."""
    return [
        (row["a"], row["b"]) if row["between"] == "models" else (row["model"],)
        for row in to_records(table)
    ]
