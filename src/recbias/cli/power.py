"""``recbias power``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recbias.cli.output.document import AsJson, open_document
from recbias.cli.printing import report_errors

if TYPE_CHECKING:
    import pandas as pd

_NUMERIC = ("n", "observed", "detectable", "needed")


def power(
    run: Annotated[
        str,
        typer.Argument(metavar="SPEC|RUN", help="A spec, a run folder, or an experiment's name."),
    ],
    difference: Annotated[
        float | None, typer.Option(help="The difference to find: 0.01. Prints how many units.")
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
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Print the smallest difference that a run could have seen, and the units one needs."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias import api
        from recbias.reports.views.run_tables import to_records

        folder = find_pilot(run, out)
        table = api.power(folder, difference, power=power, alpha=alpha)
        table = select_models(select_metrics(table, metric or ()), model or ())
        if as_json:
            document |= {"asked": difference, "power": power, "rows": to_records(table)}
        else:
            show_power(table, difference, power, folder.parent.name)


def find_pilot(run: str, out: Path) -> Path:
    """Return a run folder, or the latest run of a spec or experiment.

    Raises:
        MissingRun: There is none.
    """
    from recbias import api
    from recbias.cli.results import find_run
    from recbias.core.errors import MissingRun
    from recbias.core.input_files import has_file, to_local_path

    if to_local_path(run).is_dir() or not has_file(to_local_path(run)):
        return find_run(run, out)
    name = api.read_experiment(to_local_path(run)).name
    try:
        return find_run(name, out)
    except MissingRun:
        message = f"{name} has no finished run in {out}, which gives the variance"
        remedy = f"run a pilot: recbias run {run} --limit 200"
        raise MissingRun(message, remedy=remedy) from None


def select_metrics(table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the rows of some metrics, named as ``nDCG@10``, ``nDCG`` or with their settings.

    Raises:
        UnknownName: The run has no comparison of a metric.
    """
    from recbias.core.suggestions import normalize_name
    from recbias.reports.views.definitions import format_title

    pairs = zip(table["metric"], table["k"], strict=True)
    titles = [(format_title(name, k), name, name.partition("(")[0]) for name, k in pairs]
    names = [{normalize_name(text) for text in forms} for forms in titles]
    return _select(table, metrics, names, [forms[0] for forms in titles], "metric")


def select_models(table: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Return the rows that compare some models, or groups within them.

    Raises:
        UnknownName: The run has no comparison of a model.
    """
    from recbias.core.suggestions import normalize_name

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
    from recbias.core.errors import UnknownName
    from recbias.core.suggestions import normalize_name, suggest

    wanted = {normalize_name(text) for text in chosen}
    for text in chosen:
        if not any(normalize_name(text) in row for row in names):
            message = f"the run has no comparison of the {kind} {text!r}"
            raise UnknownName(message, where=f"--{kind}", remedy=suggest(text, {*known}))
    return table[[not wanted or bool(wanted & row) for row in names]]


def is_missing(value: object) -> bool:
    """Return whether a cell is a number that does not exist."""
    return isinstance(value, float) and math.isnan(value)


def show_power(table: pd.DataFrame, difference: float | None, power: float, name: str) -> None:
    """Print the rows as a table, with the constant columns in its title."""
    from recbias.cli.grids import print_rows
    from recbias.reports.views.rounding import format_count
    from recbias.reports.views.run_tables import to_records

    rows, places = to_records(table), _count_places(table)
    values = {key: {str(row[key]) for row in rows} for key in ("dataset", "seed", "fold")}
    constants = [f"{key} {min(texts)}" for key, texts in values.items() if len(texts) == 1]
    keys = [key for key, texts in values.items() if len(texts) > 1]
    kinds = table.groupby(["metric", "between", "model"])["test"].nunique()
    tests = ["test"] if (kinds > 1).any() else []
    keys += ["metric", "model", "group", "target", *tests, "a", "b", "unit", "given"]
    print_rows(
        (*keys, "n", "observed", "detectable", "needed", "remark"),
        [_render(row, keys, places[row["metric"]]) for row in rows],
        title=f"{name}: {format_count(len(rows), 'row')} ({', '.join(constants)})",
        numeric=_NUMERIC,
        notes=_explain(table, difference, power),
    )


def _count_places(table: pd.DataFrame) -> dict[str, int]:
    """Return the number of decimals for each metric."""
    from recbias.reports.views.rounding import count_decimals

    columns = table.groupby("metric")[["difference", "detectable"]]
    return {str(metric): count_decimals(rows.to_numpy().ravel()) for metric, rows in columns}


def _render(row: Mapping[str, Any], keys: Sequence[str], places: int) -> list[str]:
    from recbias.reports.views.definitions import format_title
    from recbias.reports.views.rounding import format_value

    title = format_title(row["metric"], row["k"])
    return [
        *(title if key == "metric" else str(row[key]) for key in keys),
        f"{row['n']:,}",
        format_value(row["difference"], places),
        "" if is_missing(row["detectable"]) else format_value(row["detectable"], places),
        _format_needed(row),
        row["remark"],
    ]


def _format_needed(row: Mapping[str, Any]) -> str:
    if is_missing(row["needed"]):
        return ""
    total = f"{row['needed']:,.0f}"
    if is_missing(row["needed_a"]):
        return total
    return f"{total} ({row['needed_a']:,.0f} + {row['needed_b']:,.0f})"


def _explain(table: pd.DataFrame, difference: float | None, power: float) -> list[str]:
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
