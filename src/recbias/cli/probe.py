"""``recbias probe``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer

from recbias.audits.probe import probe as ask
from recbias.cli.output import (
    AsJson,
    Out,
    open_document,
    print_line,
    report_errors,
    show_progress,
)
from recbias.reports.run import to_records


def probe(
    spec: Annotated[str, typer.Argument(help="A spec file, or the name of a packaged spec.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Override: budget.requests=600. Repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    out: Out = Path("results"),
) -> None:
    """Audit a live HTTP endpoint until every effect is decided."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        options = SimpleNamespace(quiet=quiet, verbose=False)
        with nullcontext() if quiet else show_progress(options) as observer:
            listener = observer.progressed if observer else None
            found = ask(spec, overrides=overrides or (), out=out, on_progress=listener)
        if as_json:
            document.update({"sentences": found.sentences, "summary": found.summary})
            document.update({"effects": to_records(found.effects), "folder": str(found.folder)})
            return
        for line in found.sentences:
            print_line(line, longest=None)
        print_line(f"report: {found.folder / 'report.html'}")
