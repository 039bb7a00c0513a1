"""``recbias run`` and ``recbias plan``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recbias.cli.faults import FAILED, USER, report_errors


class Executor(StrEnum):
    """Where models are trained."""

    local = "local"
    ray = "ray"


class OnError(StrEnum):
    """Whether the other models finish after one fails."""

    stop = "stop"
    proceed = "continue"


Spec: TypeAlias = Annotated[Path, typer.Argument(help="The experiment file.", show_default=False)]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override: models.1.neighbors=40. Repeatable."
    ),
]
Out: TypeAlias = Annotated[Path, typer.Option(help="Folder of results.")]
Data: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Folder of datasets.", envvar="RECBIAS_DATA", show_default="data"),
]
Workers: TypeAlias = Annotated[
    int, typer.Option(help="Number of processes that train models in parallel.")
]
ExecutorOption: TypeAlias = Annotated[Executor, typer.Option(help="Where models are trained.")]
Fresh: TypeAlias = Annotated[
    bool, typer.Option("--fresh", help="Compute every stage again instead of reading the cache.")
]
Offline: TypeAlias = Annotated[
    bool,
    typer.Option("--offline", help="Use no network: a missing model or LLM reply is an error."),
]
OnErrorOption: TypeAlias = Annotated[
    OnError, typer.Option(help="Whether the other models finish after one fails.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(help="Evaluate the first N queries only, as a smoke test.")
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Show every stage.")]


def run(
    spec: Spec,
    set_: Set = None,
    out: Out = Path("results"),
    data: Data = None,
    workers: Workers = 1,
    executor: ExecutorOption = Executor.local,
    fresh: Fresh = False,
    offline: Offline = False,
    on_error: OnErrorOption = OnError.proceed,
    limit: Limit = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run or resume the experiment in SPEC, write a run folder and print a summary."""
    with report_errors():
        from recbias import api
        from recbias.cli.display import open_observer, show_run

        with open_observer(quiet=quiet, verbose=verbose) as observer:
            finished_run = api.run(
                spec,
                overrides=set_ or (),
                out=out,
                data=data,
                workers=workers,
                executor=executor.value,
                fresh=fresh,
                offline=offline,
                on_error=on_error.value,
                limit=limit,
                observer=observer,
            )
        show_run(finished_run)
        if finished_run.failures:
            are_user_faults = all(failure["user"] for failure in finished_run.failures)
            raise typer.Exit(USER if are_user_faults else FAILED)


def plan(
    spec: Spec,
    set_: Set = None,
    out: Out = Path("results"),
    data: Data = None,
    workers: Workers = 1,
    executor: ExecutorOption = Executor.local,
    fresh: Fresh = False,
    offline: Offline = False,
    on_error: OnErrorOption = OnError.proceed,
    limit: Limit = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Validate SPEC and list its stages, those in the cache, and the memory needed."""
    with report_errors():
        from recbias import api
        from recbias.cli.display import show_plan
        from recbias.runner.planning.preview import preview

        api.create_executor(executor.value, workers)
        run_plan, store = api.plan(spec, overrides=set_ or (), out=out, data=data, limit=limit)
        show_plan(run_plan, preview(run_plan, store, fresh=fresh), quiet=quiet, verbose=verbose)
