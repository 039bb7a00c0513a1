"""``recbias power``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from recbias import api
from recbias.cli.output import AsJson, Out, open_document, print_rows, report_errors
from recbias.core.errors import MissingRun, UnknownName
from recbias.core.files import has_file, to_local_path
from recbias.core.text import normalize_name, suggest
from recbias.reports.run import read_run, to_records
from recbias.reports.views import Definition, collect_definitions, format_title
from recbias.reports.wording import count_decimals, format_count, format_value
from recbias.runs.power import count_labels
from recbias.runs.power import power as compute_power
from recbias.runs.tables import find_run

MOST_ROWS = 24
"""The maximum number of comparisons that are printed."""

_NUMERIC = ("n", "observed", "detectable", "needed")
_SHARED = ("dataset", "seed", "fold", "unit")


def _show_comparisons(
    table: pd.DataFrame,
    definitions: Mapping[str, Definition],
    *,
    name: str,
    notes: Sequence[str],
) -> None:
    """Print one row for each comparison, with the constant columns in the title."""
    rows, places = to_records(table), _count_places(table)
    kinds = table.groupby(["metric", "between", "model"])["test"].nunique()
    tests = ["test"] if (kinds > 1).any() else []
    keys = [*_list_varying(table), "metric", "model", *tests, "a", "b", "given"]
    print_rows(
        (*keys, "n", "observed", "detectable", "needed", "remark"),
        [
            [
                *(
                    _name_metric(row, definitions) if key == "metric" else str(row[key])
                    for key in keys
                ),
                *_render_numbers(row, places[row["metric"]]),
            ]
            for row in rows
        ],
        title=f"{name}: {format_count(len(rows), 'row')}{_describe_constants(table)}",
        numeric=_NUMERIC,
        notes=notes,
        optional=("observed",),
    )


def _name_metric(row: Mapping[str, Any], definitions: Mapping[str, Definition]) -> str:
    metric = definitions[format_title(row["metric"], row["k"])]
    return metric.describe_value(row["group"], row["target"])


def _list_varying(table: pd.DataFrame) -> list[str]:
    return [key for key in _SHARED if len({*table[key].astype(str)}) > 1]


def _describe_constants(table: pd.DataFrame) -> str:
    """Return what all rows share: `` (dataset demo, seed 42, fold 1, unit user)``."""
    varying = _list_varying(table)
    constants = [f"{key} {table[key].iloc[0]}" for key in _SHARED if key not in varying]
    return f" ({', '.join(constants)})" if constants else ""


def _sort_by_interest(table: pd.DataFrame, definitions: Mapping[str, Definition]) -> pd.DataFrame:
    """Return the comparisons of models over all queries first, then those within a model."""

    def rank(row: Mapping[str, Any]) -> int:
        if row["between"] != "models":
            return 1
        is_gap = bool(definitions[format_title(row["metric"], row["k"])].gap)
        return 2 if is_gap or row["group"] else 0

    ranks = pd.Series([*map(rank, to_records(table))], table.index, dtype="int64")
    return table.loc[ranks.sort_values(kind="stable").index]


def _count_places(table: pd.DataFrame) -> dict[str, int]:
    """Return the number of decimals for each metric."""
    columns = table.groupby("metric")[["difference", "detectable"]]
    return {str(metric): count_decimals(rows.to_numpy().ravel()) for metric, rows in columns}


def _render_numbers(row: Mapping[str, Any], places: int) -> list[str]:
    return [
        f"{row['n']:,}",
        format_value(row["difference"], places),
        "" if math.isnan(row["detectable"]) else format_value(row["detectable"], places),
        _format_needed(row),
        row["remark"],
    ]


def _format_needed(row: Mapping[str, Any]) -> str:
    if math.isnan(row["needed"]):
        return ""
    total = f"{row['needed']:,.0f}"
    if math.isnan(row["needed_a"]):
        return total
    return f"{total} ({row['needed_a']:,.0f} + {row['needed_b']:,.0f})"


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
                _show_labels(rows, half_width, folder.parent.name)
            return
        table = compute_power(folder, difference, power=power, alpha=alpha)
        definitions = collect_definitions(read_run(folder))
        table = _select_models(_select_metrics(table, metric or (), definitions), model or ())
        if as_json:
            document |= {"asked": difference, "power": power, "rows": to_records(table)}
        else:
            notes = _explain_power(table, difference, power)
            if (n_more := len(table) - MOST_ROWS) > 0:
                more = format_count(n_more, "more row")
                notes.insert(0, f"{more}: --metric and --model select, --json has all.")
            table = _sort_by_interest(table, definitions).head(MOST_ROWS)
            _show_comparisons(table, definitions, name=folder.parent.name, notes=notes)


def _show_labels(rows: Sequence[Mapping[str, Any]], half_width: float, name: str) -> None:
    """Print how many human labels each corrected value needs."""
    columns = ("metric", "model", "items", "audited", "half width", "needed", "remark")
    cells = [
        [
            *(str(row[key]) for key in columns[:4]),
            f"{row['half_width']:.4f}",
            "" if math.isnan(row["needed"]) else f"{row['needed']:,.0f}",
            row["remark"],
        ]
        for row in rows
    ]
    notes = (
        "Needed: audited items, of those that the value depends on, with the users of the run.",
    )
    title = f"{name}: human labels for intervals of ± {half_width:g}"
    numeric = ("items", "audited", "half width", "needed")
    print_rows(columns, cells, title=title, numeric=numeric, notes=notes)


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


def _select_metrics(
    table: pd.DataFrame, metrics: Sequence[str], definitions: Mapping[str, Definition]
) -> pd.DataFrame:
    """Return the rows of some metrics, named as ``nDCG@10``, ``nDCG`` or with their settings."""
    pairs = zip(table["metric"], table["k"], strict=True)
    titles = [format_title(*pair) for pair in pairs]
    forms = {
        title: {
            normalize_name(name) for name in (*definitions[title].names, definitions[title].name)
        }
        for title in {*titles}
    }
    return _select(table, metrics, [forms[title] for title in titles], titles, "metric")


def _select_models(table: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return the rows that compare some models, or groups within them."""
    between = table["between"] == "models"
    sides = zip(table["a"], table["b"], table["model"], between, strict=True)
    used = [(a, b) if is_pair else (model,) for a, b, model, is_pair in sides]
    names = [{normalize_name(text) for text in row} for row in used]
    return _select(table, models, names, [text for row in used for text in row], "model")


def _select(
    table: pd.DataFrame,
    chosen: Sequence[str],
    names: Sequence[set[str]],
    known: Sequence[str],
    kind: str,
) -> pd.DataFrame:

    requested = {normalize_name(text) for text in chosen}
    for text in chosen:
        if not any(normalize_name(text) in row for row in names):
            message = f"the run has no comparison of the {kind} {text!r}"
            raise UnknownName(message, where=f"--{kind}", remedy=suggest(text, {*known}))
    return table[[not requested or bool(requested & row) for row in names]]
