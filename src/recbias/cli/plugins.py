"""``recbias list``, ``show`` and ``schema``."""

from __future__ import annotations

from typing import Annotated

import typer

from recbias.cli.faults import reported
from recbias.cli.printing import print_line, print_table, print_text

KIND_HELP = (
    "datasets, filters, splits, queries, models, detectors, metrics, tests, "
    "templates, prompts, mitigations or references"
)


def list_(kind: Annotated[str, typer.Argument(help=KIND_HELP, show_default=False)]) -> None:
    """List what there is of a KIND."""
    with reported():
        from recbias.cli.catalogue import entries
        from recbias.cli.grids import print_rows

        rows = entries(kind)
        if rows:
            print_rows(("name", "what it is"), rows)
        else:
            print_line(f"there are no {kind} in this version")


def show(
    name: Annotated[
        str, typer.Argument(help="A plug-in, or a set of templates.", show_default=False)
    ],
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print the prompts of templates as CSV.")
    ] = False,
) -> None:
    """Show one plug-in: what it is, its parameters, formula, direction and source."""
    with reported():
        import shutil

        if prompts:
            from recbias.cli.prompts import prompts_csv

            print_table(prompts_csv(name))
            return

        from recbias.cli.catalogue import WIDTH, describe

        width = shutil.get_terminal_size((WIDTH, 24)).columns
        print_text(describe(name, min(width, WIDTH)))


def schema() -> None:
    """Print the JSON Schema of the experiment file, for editors."""
    with reported():
        import json

        from recbias.config.describe import json_schema
        from recbias.registry import REGISTRIES

        print_text(json.dumps(json_schema(REGISTRIES), indent=1))
