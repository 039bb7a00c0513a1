"""The command ``recbias`` and its subcommands."""

from __future__ import annotations

import typer

from recbias import __version__
from recbias.cli import convert, data, init, plugins, power, results, run, store
from recbias.cli.gates import verification
from recbias.cli.human import commands as human
from recbias.cli.output.document import DocumentCommand
from recbias.cli.printing import guard_streams
from recbias.cli.sentences import commands as sentences

SUMMARY = "Measure the bias of recommender systems: from one YAML file to significance tests."

app = typer.Typer(
    name="recbias",
    help=SUMMARY,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=DocumentCommand)(run.run)
app.command("plan", cls=DocumentCommand)(run.plan)
app.command("init")(init.init)
app.command("list", cls=DocumentCommand)(plugins.list_)
app.command("show")(plugins.show)
app.add_typer(data.app, name="data")
app.add_typer(sentences.app, name="sentences")
app.add_typer(human.app, name="human")
app.command("runs", cls=DocumentCommand)(results.runs)
app.command("report")(results.report)
app.command("compare", cls=DocumentCommand)(results.compare)
app.command("power", cls=DocumentCommand)(power.power)
app.command("verify", cls=DocumentCommand)(verification.verify)
app.command("new")(plugins.new)
app.command("convert")(convert.convert)
app.command("schema")(plugins.schema)
app.command("clean")(store.clean)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(help=SUMMARY)
def recbias(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Define the options of the command itself."""


def main() -> None:
    """Run the command line."""
    with guard_streams():
        app()
