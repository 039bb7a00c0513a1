"""``recbias list``, ``show`` and ``schema``."""

from __future__ import annotations

from typing import Annotated

import typer

from recbias.cli.printing import print_table, print_text, report_errors

KIND_HELP = (
    "datasets, filters, splits, queries, models, detectors, metrics, tests, "
    "templates, prompts, mitigations, references or specs"
)


def list_(
    kind: Annotated[str | None, typer.Argument(help=KIND_HELP, show_default=False)] = None,
) -> None:
    """List everything of a KIND, each with a one-line description; without one, the kinds."""
    with report_errors():
        from recbias.cli.catalogue import KINDS, find_extra, list_entries
        from recbias.cli.grids import print_rows

        if kind is None:
            counts = [(name, str(len(list_entries(name)))) for name in KINDS]
            print_rows(("kind", "entries"), counts, numeric={"entries"})
            return
        rows = [(*entry, find_extra(kind, entry[0])) for entry in list_entries(kind)]
        print_rows(("name", "description", "extra"), rows)


def show(
    name: Annotated[
        str,
        typer.Argument(help="A plug-in, template set, prompt or mitigation.", show_default=False),
    ],
    prompts: Annotated[
        bool, typer.Option("--prompts", help="Print the prompts of a set of templates as CSV.")
    ] = False,
) -> None:
    """Show a plug-in: description, parameters, formula, direction and source; or a prompt."""
    with report_errors():
        import shutil

        if prompts:
            from recbias.cli.catalogue import render_prompts_csv

            print_table(render_prompts_csv(name))
            return

        from recbias.cli.catalogue import WIDTH, describe

        width = shutil.get_terminal_size((WIDTH, 24)).columns
        print_text(describe(name, min(width, WIDTH)))


def schema() -> None:
    """Print the JSON Schema of experiment files, for validation in editors."""
    with report_errors():
        import json

        from recbias.config.schema import build_json_schema
        from recbias.registry import REGISTRIES

        print_text(json.dumps(build_json_schema(REGISTRIES), indent=1))
