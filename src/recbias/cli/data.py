"""``recbias data fetch`` and ``data describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recbias.cli.faults import report_errors
from recbias.cli.printing import print_line, print_text

app = typer.Typer(help="Download and describe datasets.", no_args_is_help=True)

Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Folder of datasets.", envvar="RECBIAS_DATA", show_default="data"),
]
Name: TypeAlias = Annotated[str, typer.Argument(help="A dataset.", show_default=False)]

LOCAL_DATASETS = ("demo", "tables")
"""Datasets without a download: the generated one, and the user's own tables."""


@app.command("fetch")
def fetch(name: Name, data: Data = None) -> None:
    """Download a dataset from its publisher, verify its digest and unpack it."""
    with report_errors():
        from recbias import api
        from recbias.cli.display import open_observer
        from recbias.core.stage_context import stage_context
        from recbias.core.suggestions import normalize_name
        from recbias.data.fetch.download import fetch as fetch_dataset
        from recbias.data.fetch.download import find_source

        if normalize_name(name) in LOCAL_DATASETS:
            print_line(f"{name} needs no download", to_stderr=True)
            return
        print_text(find_source(name).terms(), to_stderr=True)
        with (
            open_observer(quiet=False, verbose=False) as observer,
            stage_context(on_progress=observer.progressed),
        ):
            folder = fetch_dataset(name, api.data_folder(data))
        print_line(folder, longest=None)


@app.command("describe")
def describe(name: Name, data: Data = None) -> None:
    """Describe a dataset or each dataset of a spec file: counts, sparsity, popularity, labels."""
    with report_errors():
        from recbias.cli.describing import describe_datasets

        for line in describe_datasets(name, data):
            print_line(line)
