"""``recbias monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recbias.audits.monitor import monitor as follow
from recbias.cli.output import AsJson, Out, open_document, print_grid, print_line, report_errors
from recbias.reports.run import to_records
from recbias.reports.wording import tabulate_frame


def monitor(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment, a folder of its runs, a folder of tables named by date: user, "
            "value, group; or a table: date, value, std_error."
        ),
    ],
    metric: Annotated[str, typer.Option(help="The metric; by default the first by group.")] = "",
    by: Annotated[str, typer.Option(help="The label of the users; by default the first.")] = "",
    alpha: Annotated[float, typer.Option(help="The probability of any false alarm.")] = 0.05,
    report: Annotated[
        Path | None, typer.Option(help="Write report.html and report.md into this folder.")
    ] = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """Say since when runs or exports have a gap."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        found = follow(name, metric=metric, by=by, alpha=alpha, out=out)
        page = None if report is None else found.report(report)
        if as_json:
            document.update({"sentences": [*found.sentences], "looks": to_records(found.looks)})
            return
        for line in found.sentences:
            print_line(line, longest=None)
        columns = [name for name in found.looks.columns if (found.looks[name] != "").any()]
        if columns:
            print_grid(tabulate_frame("runs", found.looks[columns]))
        if page is not None:
            print_line(f"report: {page}")
