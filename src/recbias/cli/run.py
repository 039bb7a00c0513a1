"""``recbias run`` and ``recbias plan``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from recbias.cli.faults import FAILED, USER, reported


class Executor(StrEnum):
    """Where models are trained."""

    local = "local"
    ray = "ray"


class OnError(StrEnum):
    """What happens to the other models when one fails."""

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
Workers: TypeAlias = Annotated[int, typer.Option(help="Models trained at once, in processes.")]
Fresh: TypeAlias = Annotated[bool, typer.Option("--fresh", help="Do not reuse stored stages.")]
Offline: TypeAlias = Annotated[
    bool, typer.Option("--offline", help="Use no network: what is not here or stored is an error.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option(help="Ask the first N queries only: a smoke test.")
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Every stage.")]


def run(
    spec: Spec,
    set_: Set = None,
    out: Out = Path("results"),
    data: Data = None,
    workers: Workers = 1,
    executor: Annotated[Executor, typer.Option(help="Where models are trained.")] = Executor.local,
    fresh: Fresh = False,
    offline: Offline = False,
    on_error: Annotated[
        OnError, typer.Option(help="Whether the other models finish after one fails.")
    ] = OnError.proceed,
    limit: Limit = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run, or resume, the experiment in SPEC; write a run folder; print a summary table."""
    with reported():
        from recbias import api
        from recbias.cli.display import observing, show_run

        with observing(quiet=quiet, verbose=verbose) as observer:
            finished = api.run(
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
        show_run(finished)
        if finished.failures:
            users = all(each["user"] for each in finished.failures)
            raise typer.Exit(USER if users else FAILED)


def plan(
    spec: Spec,
    set_: Set = None,
    out: Out = Path("results"),
    data: Data = None,
    workers: Workers = 1,
    executor: Annotated[Executor, typer.Option(help="Where models are trained.")] = Executor.local,
    fresh: Fresh = False,
    offline: Offline = False,
    on_error: Annotated[
        OnError, typer.Option(help="Whether the other models finish after one fails.")
    ] = OnError.proceed,
    limit: Limit = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Check SPEC and show the stages, which are stored already, and the memory. No work."""
    with reported():
        from recbias import api
        from recbias.cli.display import show_plan
        from recbias.runner.planning.preview import preview

        api.executor_of(executor.value, workers)
        made, store = api.plan(spec, overrides=set_ or (), out=out, data=data, limit=limit)
        show_plan(made, preview(made, store, fresh=fresh), quiet=quiet, verbose=verbose)
