"""``recbias data fetch`` and ``data describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recbias.cli.faults import reported
from recbias.cli.printing import print_line, print_text

app = typer.Typer(help="Fetch and describe datasets.", no_args_is_help=True)

Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Folder of datasets.", envvar="RECBIAS_DATA", show_default="data"),
]
Name: TypeAlias = Annotated[str, typer.Argument(help="A dataset.", show_default=False)]

NOTHING_TO_FETCH = ("demo", "tables")
"""Datasets that nobody publishes: the built-in one, and one's own."""


@app.command("fetch")
def fetch(name: Name, data: Data = None) -> None:
    """Download a dataset from its publisher, check it and unpack it."""
    with reported():
        from recbias import api
        from recbias.cli.display import observing
        from recbias.core.stage_context import stage_context
        from recbias.core.suggestions import normalize_name
        from recbias.data.fetch.download import fetch as fetch_dataset
        from recbias.data.fetch.download import source_of

        if normalize_name(name) in {normalize_name(each) for each in NOTHING_TO_FETCH}:
            print_line(f"{name} needs no fetching", to_stderr=True)
            return
        source = source_of(name)
        print_text(source.terms(), to_stderr=True)
        with (
            observing(quiet=False, verbose=False) as observer,
            stage_context(on_progress=observer.progressed),
        ):
            folder = fetch_dataset(name, api.data_folder(data))
        print_line(folder, longest=None)


@app.command("describe")
def describe(name: Name, data: Data = None) -> None:
    """Count a dataset: sparsity, popularity tail, labels. NAME is a dataset or a spec file."""
    with reported():
        from recbias.cli.describing import described

        for line in described(name, data):
            print_line(line)
