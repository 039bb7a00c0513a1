"""The command ``recbias``: which commands there are, and the module of each.

A module is imported when its command is called, so ``recbias --help`` imports none of them.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from recbias import __version__

_SUMMARY = "Measure the bias of recommender systems: from one YAML file to significance tests."

_COMMANDS = {
    "run": ("run:run", "Run or resume the experiment of a SPEC, and print a summary."),
    "plan": ("run:plan", "Validate a SPEC; print its stages, requests, time and memory."),
    "init": (
        "catalogue:init",
        "Write a packaged spec and its tables into this folder, or list all.",
    ),
    "list": ("catalogue:list_", "List everything of a KIND; without one, the kinds."),
    "show": ("catalogue:show", "Show a plug-in, a prompt, a spec or a published table."),
    "runs": ("results:runs", "List the runs of a results folder, the newest first."),
    "report": ("results:report", "Write the reports of a finished run again."),
    "compare": ("compare:compare", "Compare runs by paired tests, or with published results."),
    "examples": ("results:examples", "Print the units with the worst values, and their lists."),
    "explain": ("results:explain", "Say what a gap between two groups comes from."),
    "probe": ("results:probe", "Audit a live HTTP endpoint until every effect is decided."),
    "monitor": ("results:monitor", "Say since when the runs of an experiment have a gap."),
    "power": ("compare:power", "Print what a run could have seen, and the units one needs."),
    "verify": ("results:verify", "Compare an audit card with a run, by digests."),
    "new": ("catalogue:new", "Write a plug-in of one's own with its test into this folder."),
    "schema": ("catalogue:schema", "Print the JSON Schema of experiment files, for editors."),
    "clean": ("data:clean", "Remove cached stage results from the store."),
    "data": ("", "Download and describe datasets."),
    "data fetch": ("data:fetch", "Download a dataset from its publisher, and verify it."),
    "data side": ("data:side", "Write the cast, directors and overviews of MovieLens films."),
    "data describe": (
        "data:describe",
        "Print the counts, popularity and labels of a dataset.",
    ),
    "human": ("", "Let people rate the responses of models."),
    "human export": ("human:export_sheets", "Write a blinded sheet of responses for each rater."),
    "human import": (
        "human:import_ratings",
        "Read filled sheets into a file of ratings.",
    ),
}
"""Module and function, blank for a group, and the first sentence of the docstring, by name."""


class _Commands(TyperGroup):
    """The commands whose names begin with ``prefix``."""

    def __init__(self, *, prefix: str = "", **attributes: Any) -> None:
        super().__init__(**attributes)
        self.prefix = prefix
        for name, (_, summary) in _COMMANDS.items():
            group, _, last = name.rpartition(" ")
            if group == prefix:
                self.add_command(TyperCommand(last, short_help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and its arguments, as typer does."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(f"{self.prefix} {name}".lstrip()), rest


@cache
def load_command(name: str) -> Any:
    """Import the module of a command, such as ``data fetch``, and return it for typer."""
    target, summary = _COMMANDS[name]
    last = name.rpartition(" ")[2]
    if not target:
        return _Commands(
            prefix=name, name=last, help=summary, no_args_is_help=True, rich_markup_mode=None
        )
    module, _, attribute = target.partition(":")
    function = getattr(importlib.import_module(f"recbias.cli.{module}"), attribute)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(last)(function)
    return typer.main.get_command(single)


app = typer.Typer(
    name="recbias",
    cls=_Commands,
    help=_SUMMARY,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(__version__)
        raise typer.Exit


@app.callback(help=_SUMMARY)
def recbias(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Define the options of the command itself."""


def main() -> None:
    """Run the command line, also without standard streams or with one of few characters."""
    devnull = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open until the exit
    sys.stdout, sys.stderr = sys.stdout or devnull, sys.stderr or devnull
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # one of Latin-1, say, has no lines of tables
            stream.reconfigure(errors="backslashreplace")
    app()
