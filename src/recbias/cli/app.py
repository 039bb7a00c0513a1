"""The command ``recbias`` and its global behaviour: help, errors to exit codes."""

from __future__ import annotations

import typer

from recbias import __version__
from recbias.cli import data, plugins, results, run, store
from recbias.cli.faults import standard_streams

app = typer.Typer(
    name="recbias",
    help="Measure how biased a recommender is: one YAML file from data to a significance table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run)
app.command("plan")(run.plan)
app.command("list")(plugins.list_)
app.command("show")(plugins.show)
app.add_typer(data.app, name="data")
app.command("report")(results.report)
app.command("compare")(results.compare)
app.command("schema")(plugins.schema)
app.command("clean")(store.clean)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def recbias(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Measure how biased a recommender is: one YAML file from data to a significance table."""


def main() -> None:
    """Run the command line."""
    with standard_streams():
        app()
