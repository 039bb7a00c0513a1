"""The options of a run, which the command, Python and the plan share, and who watches it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    get_type_hints,
)

from recbias.core.context import StageRecord
from recbias.core.files import to_local_path

Spec: TypeAlias = Path | str | Mapping[str, Any]
"""The experiment file, the name of a packaged spec, or the content as a mapping."""

P = ParamSpec("P")
R = TypeVar("R")


class Observer(Protocol):
    """Receives the progress of a run.

    One that has ``planned(work)`` also receives its ``RemainingWork`` before it starts.
    """

    def started(self, stage: Any) -> None:
        """Report that a stage of the plan starts to compute."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report the progress of the running stage: ``done`` of ``total`` epochs, batches, ..."""

    def finished(self, record: StageRecord) -> None:
        """Report that a stage was computed, was reused, or failed."""

    def warned(self, warning: str) -> None:
        """Report a warning that is not about one stage."""


class Silent:
    """An observer that reports nothing."""

    def started(self, stage: Any) -> None:
        """Report nothing."""

    def progressed(self, what: str, done: int, total: int) -> None:
        """Report nothing."""

    def finished(self, record: StageRecord) -> None:
        """Report nothing."""

    def warned(self, warning: str) -> None:
        """Report nothing."""


class Flag(NamedTuple):
    """How the command line shows an option of a run.

    Args:
        help: What it does, in one sentence.
        name: Its name, if it is not that of the field.
        metavar: What its value is called.
        envvar: The environment variable that it is read from.
        default: The default in words.
    """

    help: str
    name: str = ""
    metavar: str | None = None
    envvar: str | None = None
    default: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line, or a call from Python, adds to a spec.

    Fields with a ``Flag`` are options of ``recbias run`` and ``recbias plan`` too.

    Args:
        overrides: Settings such as ``models.1.neighbors=40``.
        out: The folder of results.
        data: The folder of datasets; by default ``$RECBIAS_DATA``, else ``data``.
        workers: The number of processes that train and query models in parallel.
        executor: ``local``; ``ray`` needs the package of that name.
        fresh: Whether to compute every stage again instead of reading the cache.
        offline: Whether to forbid network access: a pretrained model that is not on this machine,
            and a request to a language model without a stored reply, are errors.
        on_error: Whether the other models finish after one has failed.
        limit: The number of queries to evaluate, from the first; all by default.
        device: The device of the models that name none themselves, instead of that of the spec.
        store: The URL at which results are stored too, such as ``s3://bucket/recbias``.
        progress: Whether to show the progress; by default only in a notebook.
        observer: Receives the progress of the run, instead of showing it.
    """

    overrides: Annotated[
        Sequence[str],
        Flag("Override: models.1.neighbors=40. Repeatable.", "--set", metavar="KEY=VALUE"),
    ] = ()
    out: Annotated[Path | str, Flag("Folder of results.")] = Path("results")
    data: Annotated[
        Path | str | None, Flag("Folder of datasets.", envvar="RECBIAS_DATA", default="data")
    ] = None
    workers: Annotated[int, Flag("Number of processes that train models in parallel.")] = 1
    executor: Annotated[Literal["local", "ray"], Flag("Where models are trained.")] = "local"
    fresh: Annotated[bool, Flag("Compute every stage again instead of reading the cache.")] = False
    offline: Annotated[bool, Flag("Use no network: a missing model or LLM reply is an error.")] = (
        False
    )
    on_error: Annotated[
        Literal["stop", "continue"], Flag("Whether the other models finish after one fails.")
    ] = "continue"
    limit: Annotated[int | None, Flag("Evaluate the first N queries only, as a smoke test.")] = (
        None
    )
    device: Annotated[
        str | None,
        Flag(
            "The device of the models that name none themselves.",
            metavar="auto|cpu|cuda|cuda:1|mps",
        ),
    ] = None
    store: Annotated[
        str | None,
        Flag("Where results are stored too: s3://bucket/folder, file:///...", metavar="URL"),
    ] = None
    progress: bool | None = None
    observer: Observer | None = None

    @property
    def results_folder(self) -> Path:
        """The folder of results on this machine."""
        return to_local_path(self.out)

    @property
    def data_folder(self) -> Path:
        """The folder of datasets."""
        return data_folder(self.data)


def data_folder(data: Path | str | None = None) -> Path:
    """Return the folder of datasets: the one given, else ``$RECBIAS_DATA``, else ``data``."""
    return to_local_path(data or os.environ.get("RECBIAS_DATA") or "data")


def take_options(
    declaration: Callable[P, RunOptions],
) -> Callable[[Callable[[Spec, RunOptions], R]], Callable[Concatenate[Spec, P], R]]:
    """Let callers of a function give the options of a run as keywords: ``run(spec, limit=10)``.

    ``declaration`` is ``RunOptions``, from which type checkers know the keywords.
    """

    def decorate(act: Callable[[Spec, RunOptions], R]) -> Callable[Concatenate[Spec, P], R]:
        @wraps(act)
        def call(spec: Spec, *arguments: P.args, **options: P.kwargs) -> R:
            return act(spec, declaration(*arguments, **options))

        hints = {"spec": Spec, **get_type_hints(RunOptions)}
        options = signature(declaration).parameters.values()
        parameters = [Parameter("spec", Parameter.POSITIONAL_OR_KEYWORD, annotation=Spec)]
        parameters += [each.replace(annotation=hints[each.name]) for each in options]
        result = act.__annotations__["return"]
        shown: Any = call
        shown.__signature__ = Signature(parameters, return_annotation=result)
        shown.__annotations__ = {**hints, "return": result}
        decorated: Callable[Concatenate[Spec, P], R] = shown
        return decorated

    return decorate


def list_option_types() -> dict[str, Any]:
    """Return the type of each option, with its ``Flag`` if it has one."""
    return get_type_hints(RunOptions, include_extras=True)
