"""``recbias run`` and ``recbias plan``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from inspect import Parameter, Signature
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import typer

from recbias.cli.output.document import AsJson, describe_errors, open_document
from recbias.cli.printing import (
    DONE,
    FAILED,
    MEANINGS,
    OUT_OF_TOLERANCE,
    STOPPED,
    USER,
    print_line,
    report_errors,
    show_progress,
)
from recbias.core.errors import Faults, RecbiasError, UserError
from recbias.core.machine.memory import pause_collection
from recbias.runner.options import Flag, RunOptions, list_option_types

if TYPE_CHECKING:
    from recbias.runs import Run

SEVERITY = (*STOPPED, FAILED, USER, OUT_OF_TOLERANCE)
"""The exit codes other than 0, the worst first."""


def _take_options(act: Callable[[SimpleNamespace], None]) -> Callable[..., None]:
    """Return a command with the options that ``run`` and ``plan`` share.

    Those of ``RunOptions`` are in ``options.chosen``.
    """
    declared = dict(_declare_options())

    def command(**given: Any) -> None:
        chosen = {name: given[name] for name in declared}
        chosen["overrides"] = chosen["overrides"] or ()
        options = SimpleNamespace(**given, chosen=chosen)
        with report_errors(), open_document(is_wanted=options.as_json) as document:
            if len(options.specs) > 1:
                _validate_all(options)
                act_on_each(options, act, document)
            else:
                options.spec, options.document = options.specs[0], document
                act(options)

    _declare(command, {"specs": (_Specs, Parameter.empty), **declared, **_OF_THE_COMMAND})
    command.__doc__ = act.__doc__
    return command


_Specs: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="SPEC", help="Experiment files, or names of packaged specs.", show_default=False
    ),
]
_Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show warnings and errors, but no progress.")
]
_Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Show every stage.")]
_OF_THE_COMMAND = {
    "quiet": (_Quiet, False),
    "verbose": (_Verbose, False),
    "as_json": (AsJson, False),
}
"""The options that are not those of a run from Python, with their defaults."""


def _declare(command: Any, parameters: Mapping[str, tuple[Any, Any]]) -> None:
    """Give a command parameters for typer: types and defaults by name."""
    command.__annotations__ = {name: hint for name, (hint, _) in parameters.items()}
    command.__signature__ = Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default)
            for name, (hint, default) in parameters.items()
        ]
    )


def _declare_options() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the options of a run by name, each with its type for typer and its default."""
    defaults = {field.name: field.default for field in fields(RunOptions)}
    for name, hint in list_option_types().items():
        flag = next((each for each in get_args(hint)[1:] if isinstance(each, Flag)), None)
        if flag is None:
            continue
        kind = get_args(hint)[0]
        option = typer.Option(
            *filter(None, [flag.name or (f"--{name}" if kind is bool else "")]),
            help=flag.help,
            metavar=flag.metavar,
            envvar=flag.envvar,
            show_default=flag.default or True,
        )
        is_repeatable = kind == Sequence[str]
        if is_repeatable:
            kind = list[str] | None
        elif str in get_args(kind) and Path in get_args(kind):
            kind = Path if defaults[name] else Path | None
        yield name, (Annotated[kind, option], None if is_repeatable else defaults[name])


def _validate_all(options: SimpleNamespace) -> None:
    """Plan every spec, and raise the faults of all of them."""
    from recbias import api

    faults: list[UserError] = []
    for spec in options.specs:
        try:
            api.plan(spec, **options.chosen)
        except UserError as error:
            faults.append(error)
    if faults:
        raise Faults(faults)


def act_on_each(
    options: SimpleNamespace,
    act: Callable[[SimpleNamespace], None],
    document: dict[str, Any],
) -> None:
    """Act on each spec in turn and exit with the worst code; an interruption ends all.

    The entries of ``document["specs"]`` are the documents of the specs, in their order.
    """
    codes = set()
    document["specs"] = []
    for spec in options.specs:
        options.spec, options.document = spec, {"spec": str(spec)}
        document["specs"].append(options.document)
        try:
            with report_errors(), _describe_errors_in(options.document):
                act(options)
        except typer.Exit as end:
            codes.add(end.exit_code)
        stops = {*STOPPED} | ({FAILED, USER} if options.on_error == "stop" else set())
        if codes & stops:
            break
    if (worst := next((code for code in SEVERITY if code in codes), DONE)) != DONE:
        raise typer.Exit(worst)


@contextmanager
def _describe_errors_in(document: dict[str, Any]) -> Iterator[None]:
    try:
        yield
    except RecbiasError as error:
        document["errors"] = describe_errors(error)
        raise


@_take_options
def run(options: SimpleNamespace) -> None:
    """Run or resume the experiment of each SPEC, write a run folder and print a summary."""
    from recbias import api
    from recbias.cli.output.contents import describe_run
    from recbias.cli.output.tables import show_failures, show_run

    with show_progress(options) as observer:
        finished_run = api.run(options.spec, observer=observer, **options.chosen)
    code = find_exit_code(finished_run)
    if options.as_json:
        from recbias.cli.output.contents import describe_run

        show_failures(finished_run)
        options.document.update(describe_run(finished_run, code, MEANINGS[code]))
    else:
        show_run(finished_run)
    if code != DONE:
        raise typer.Exit(code)


def find_exit_code(run: Run) -> int:
    """Return the exit code of a finished run: failures come before failed checks."""
    if run.failures:
        return USER if all(failure["user"] for failure in run.failures) else FAILED
    return OUT_OF_TOLERANCE if any(check["failed"] for check in run.checks) else DONE


@_take_options
@pause_collection()  # of a large plan it takes as long as the plan, and finds nothing
def plan(options: SimpleNamespace) -> None:
    """Validate each SPEC; list its stages, the requests to language models, time and memory."""
    from recbias import api
    from recbias.cli.output.contents import describe_plan
    from recbias.cli.output.tables import show_plan
    from recbias.runner.execution.executor import Executor
    from recbias.runner.execution.request_totals import count_requests

    api.create_executor(options.executor, options.workers)
    with show_progress(options):
        run_plan, store = api.plan(options.spec, **options.chosen)
    for warning in api.list_warnings(run_plan):
        print_line(f"warning: {warning}", to_stderr=True)
    with show_progress(options) as observer:
        requests = count_requests(run_plan, Executor(store, observer, fresh=options.fresh))
        steps, unchecked = api.preview_run(run_plan, store, fresh=options.fresh)
    if options.as_json:
        options.document.update(describe_plan(run_plan, steps, requests, unchecked))
    else:
        show_plan(run_plan, steps, requests, quiet=options.quiet, verbose=options.verbose)
    note = "note: labels, columns and given lists of {} are checked when it is loaded"
    for name in unchecked:
        print_line(note.format(name), to_stderr=True)
