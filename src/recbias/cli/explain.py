"""``recbias explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recbias.claims.explain import explain as explain_gap
from recbias.claims.interventions import read_interventions
from recbias.cli.data import Data
from recbias.cli.output import (
    AsJson,
    Out,
    RunName,
    open_document,
    print_grid,
    print_line,
    report_errors,
)
from recbias.core.context import collect_warnings
from recbias.reports.run import to_records
from recbias.reports.svg import FileNames
from recbias.reports.wording import tabulate_frame
from recbias.runs.tables import load

_MOST_ROWS = 10  # of a table
_TITLES = {
    "parts": "what the groups differ in: parts of the gap",
    "interventions": "the gap after training on equalised data",
    "worst": "groups of users, found in one half, tested in the other",
    "changes": "models of the run",
}


def explain(
    run: RunName,
    gap: Annotated[str, typer.Option(help='The metric and the label: "nDCG by gender".')],
    model: Annotated[
        str | None, typer.Option(help="The model; by default the one with the best mean.")
    ] = None,
    groups: Annotated[
        list[str] | None, typer.Option(help="One of the two groups. Give it twice.")
    ] = None,
    anyway: Annotated[
        bool, typer.Option(help="Explain a gap whose interval holds 0 too.")
    ] = False,
    retrain: Annotated[
        list[str] | None,
        typer.Option(
            help="Train the model again with equal: size, length, popularity; tuned for its worst "
            "group; or another seed. Repeatable: one training for each subset.",
            metavar="size|length|popularity|worst|seed",
        ),
    ] = None,
    as_json: AsJson = False,
    data: Data = None,
    out: Out = Path("results"),
) -> None:
    """Say what a gap between two groups comes from.

    The report is written to a folder beside the run.
    """
    with report_errors(), open_document(is_wanted=as_json) as document:
        loaded = load(run, out)
        with collect_warnings() as warnings:
            found = explain_gap(
                loaded,
                gap,
                model=model,
                groups=groups or (),
                anyway=anyway,
                retrain=read_interventions(retrain or ()),
                data=data,
                out=out,
            )
        for warning in warnings:
            print_line(f"warning: {warning}", to_stderr=True)
        tables = {name: to_records(table) for name, table in found.tables.items()}
        name = FileNames().free(f"{gap} of {found.gap['model']}")
        folder = loaded.folder.parent / "explained" / name
        found.write(folder)
        if as_json:
            document["folder"] = str(folder)
            document.update({"gap": dict(found.gap), **tables, "notes": [*found.notes]})
            document["sentences"] = found.sentences
            return
        for line in (*found.sentences, *(f"note: {note}" for note in found.notes)):
            print_line(line, longest=None)
        for name, title in _TITLES.items():
            if len(rows := found.tables[name].head(_MOST_ROWS)):
                print_grid(tabulate_frame(title, rows))
        print_line(f"report: {folder / 'report.html'}")
