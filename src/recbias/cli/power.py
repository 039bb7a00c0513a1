"""``recbias power``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recbias.cli.output.document import AsJson, open_document
from recbias.cli.printing import report_errors

if TYPE_CHECKING:
    import pandas as pd

    from recbias.reports.views.definitions import Definition


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
    every: Annotated[
        bool, typer.Option("--all", help="Print each of more than 24 comparisons.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
) -> None:
    """Print the smallest difference that a run could have seen, and the units one needs."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias import api
        from recbias.cli.output.power_tables import (
            MOST_ROWS,
            explain_power,
            show_comparisons,
            show_ranges,
            sort_by_interest,
        )
        from recbias.reports.views.definitions import collect_definitions
        from recbias.reports.views.run_tables import read_run, to_records

        folder = find_pilot(run, out)
        table = api.power(folder, difference, power=power, alpha=alpha)
        definitions = collect_definitions(read_run(folder))
        table = select_models(select_metrics(table, metric or (), definitions), model or ())
        if as_json:
            document |= {"asked": difference, "power": power, "rows": to_records(table)}
        else:
            notes = explain_power(table, difference, power)
            is_short = every or len(table) <= MOST_ROWS
            show = show_comparisons if is_short else show_ranges
            table = sort_by_interest(table, definitions)
            show(table, definitions, name=folder.parent.name, notes=notes)


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


def select_metrics(
    table: pd.DataFrame, metrics: Sequence[str], definitions: Mapping[str, Definition]
) -> pd.DataFrame:
    """Return the rows of some metrics, named as ``nDCG@10``, ``nDCG`` or with their settings.

    Raises:
        UnknownName: The run has no comparison of a metric.
    """
    from recbias.core.suggestions import normalize_name
    from recbias.reports.views.definitions import format_title

    pairs = zip(table["metric"], table["k"], strict=True)
    titles = [format_title(*pair) for pair in pairs]
    forms = {
        title: {
            normalize_name(name) for name in (*definitions[title].names, definitions[title].name)
        }
        for title in {*titles}
    }
    return _select(table, metrics, [forms[title] for title in titles], titles, "metric")


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

    requested = {normalize_name(text) for text in chosen}
    for text in chosen:
        if not any(normalize_name(text) in row for row in names):
            message = f"the run has no comparison of the {kind} {text!r}"
            raise UnknownName(message, where=f"--{kind}", remedy=suggest(text, {*known}))
    return table[[not requested or bool(requested & row) for row in names]]
