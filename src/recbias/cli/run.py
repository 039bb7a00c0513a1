"""``recbias run`` and ``recbias plan``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recbias.cli.data import Data
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

if TYPE_CHECKING:
    from recbias.runner.planning.plan import Plan
    from recbias.runner.storage.store import Store
    from recbias.runs import Run

Executor = StrEnum("Executor", ["local", "ray"])
SEVERITY = (*STOPPED, FAILED, USER, OUT_OF_TOLERANCE)
"""The exit codes other than 0, the worst first."""

OnError = StrEnum("OnError", {"stop": "stop", "proceed": "continue"})


def _take_options(act: Callable[[SimpleNamespace], None]) -> Callable[..., None]:
    """Return a command with the options that ``run`` and ``plan`` share."""

    def command(
        specs: Annotated[
            list[Path],
            typer.Argument(
                metavar="SPEC",
                help="Experiment files, or names of packaged specs.",
                show_default=False,
            ),
        ],
        overrides: Annotated[
            list[str] | None,
            typer.Option(
                "--set", metavar="KEY=VALUE", help="Override: models.1.neighbors=40. Repeatable."
            ),
        ] = None,
        out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
        data: Data = None,
        workers: Annotated[
            int, typer.Option(help="Number of processes that train models in parallel.")
        ] = 1,
        executor: Annotated[
            Executor, typer.Option(help="Where models are trained.")
        ] = Executor.local,
        fresh: Annotated[
            bool,
            typer.Option(
                "--fresh", help="Compute every stage again instead of reading the cache."
            ),
        ] = False,
        offline: Annotated[
            bool,
            typer.Option(
                "--offline", help="Use no network: a missing model or LLM reply is an error."
            ),
        ] = False,
        on_error: Annotated[
            OnError, typer.Option(help="Whether the other models finish after one fails.")
        ] = OnError.proceed,
        limit: Annotated[
            int | None, typer.Option(help="Evaluate the first N queries only, as a smoke test.")
        ] = None,
        device: Annotated[
            str | None,
            typer.Option(
                metavar="auto|cpu|cuda|cuda:1|mps",
                help="Where models compute that do not name a device themselves.",
            ),
        ] = None,
        store: Annotated[
            str | None,
            typer.Option(
                metavar="URL", help="Where results are stored too: s3://bucket/folder, file:///..."
            ),
        ] = None,
        quiet: Annotated[
            bool, typer.Option("--quiet", "-q", help="Show warnings and errors, but no progress.")
        ] = False,
        verbose: Annotated[
            bool, typer.Option("--verbose", "-v", help="Show every stage.")
        ] = False,
        as_json: AsJson = False,
    ) -> None:
        options = SimpleNamespace(**locals())
        with report_errors(), open_document(is_wanted=as_json) as document:
            if len(specs) > 1:
                _validate_all(options)
                act_on_each(options, act, document)
            else:
                options.spec, options.document = specs[0], document
                act(options)

    command.__doc__ = act.__doc__
    return command


def _make_plan(spec: Path, options: SimpleNamespace) -> tuple[Plan, Store]:
    from recbias import api

    return api.plan(
        spec,
        overrides=options.overrides or (),
        out=options.out,
        data=options.data,
        limit=options.limit,
        device=options.device,
        store=options.store,
    )


def _validate_all(options: SimpleNamespace) -> None:
    """Plan every spec, and raise the faults of all of them."""
    faults: list[UserError] = []
    for spec in options.specs:
        try:
            _make_plan(spec, options)
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
        stops = {*STOPPED} | ({FAILED, USER} if options.on_error == OnError.stop else set())
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
        finished_run = api.run(
            options.spec,
            overrides=options.overrides or (),
            out=options.out,
            data=options.data,
            workers=options.workers,
            executor=options.executor.value,
            fresh=options.fresh,
            offline=options.offline,
            on_error=options.on_error.value,
            limit=options.limit,
            device=options.device,
            store=options.store,
            observer=observer,
        )
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

    api.create_executor(options.executor.value, options.workers)
    with show_progress(options):
        run_plan, store = _make_plan(options.spec, options)
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
