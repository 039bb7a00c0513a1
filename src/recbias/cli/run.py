"""``recbias run`` and ``recbias plan``."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer

from recbias.cli.data import Data
from recbias.cli.printing import FAILED, OUT_OF_TOLERANCE, USER, print_line, report_errors

Executor = StrEnum("Executor", ["local", "ray"])
OnError = StrEnum("OnError", {"stop": "stop", "proceed": "continue"})


def _take_options(act: Callable[[SimpleNamespace], None]) -> Callable[..., None]:
    """Return a command with the options that ``run`` and ``plan`` share."""

    def command(
        spec: Annotated[
            Path,
            typer.Argument(
                help="The experiment file, or the name of a packaged spec.", show_default=False
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
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
        verbose: Annotated[
            bool, typer.Option("--verbose", "-v", help="Show every stage.")
        ] = False,
    ) -> None:
        options = SimpleNamespace(**locals())
        with report_errors():
            act(options)

    command.__doc__ = act.__doc__
    return command


@_take_options
def run(options: SimpleNamespace) -> None:
    """Run or resume the experiment in SPEC, write a run folder and print a summary."""
    from recbias import api
    from recbias.cli.display import show_run
    from recbias.cli.gates.checks import show_checks
    from recbias.progress import open_observer

    with open_observer(quiet=options.quiet, verbose=options.verbose) as observer:
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
            observer=observer,
        )
    show_run(finished_run)
    has_failed_check = show_checks(finished_run)
    if finished_run.failures:
        are_user_faults = all(failure["user"] for failure in finished_run.failures)
        raise typer.Exit(USER if are_user_faults else FAILED)
    if has_failed_check:
        raise typer.Exit(OUT_OF_TOLERANCE)


@_take_options
def plan(options: SimpleNamespace) -> None:
    """Validate SPEC and list its stages, the requests to language models, and the memory."""
    from recbias import api
    from recbias.cli.display import show_plan
    from recbias.progress import open_observer
    from recbias.runner.execution.executor import Executor, Rehearsal, Silent
    from recbias.runner.execution.preflight import check_inputs
    from recbias.runner.execution.request_totals import count_requests
    from recbias.runner.planning.preview import preview

    api.create_executor(options.executor.value, options.workers)
    run_plan, store = api.plan(
        options.spec,
        overrides=options.overrides or (),
        out=options.out,
        data=options.data,
        limit=options.limit,
        device=options.device,
    )
    for warning in run_plan.warnings:
        print_line(f"warning: {warning}", to_stderr=True)
    with open_observer(quiet=options.quiet, verbose=options.verbose) as observer:
        requests = count_requests(run_plan, Executor(store, observer, fresh=options.fresh))
        steps = preview(run_plan, store, fresh=options.fresh)
        unchecked = check_inputs(run_plan, Rehearsal(store, Silent(), fresh=options.fresh))
    show_plan(run_plan, steps, requests, quiet=options.quiet, verbose=options.verbose)
    for dataset in unchecked:
        message = f"labels, columns and given lists of {dataset} are checked when it is loaded"
        print_line(f"note: {message}", to_stderr=True)
