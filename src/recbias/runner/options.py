"""The options of a run, which the command, Python and the plan share, and who watches it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import (
    Any,
    Concatenate,
    Literal,
    ParamSpec,
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


class Observer:
    """Receives the progress of a run; this one reports nothing.

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


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line, or a call from Python, adds to a spec.

    All but ``progress`` and ``observer`` are options of ``recbias run`` and ``recbias plan``, with
    this help:

    Args:
        overrides: Settings such as models.1.neighbors=40. Repeatable.
        out: The folder of results.
        data: The folder of datasets; by default $RECBIAS_DATA, else data.
        workers: The number of processes that train and query models in parallel.
        executor: Where models are trained; ray needs the package of that name.
        fresh: Compute every stage again instead of reading the cache.
        offline: Use no network: a pretrained model that is not on this machine, and a request to
            a language model without a stored reply, are errors.
        on_error: Whether the other models finish after one has failed.
        limit: The number of queries to evaluate, from the first, as a smoke test.
        device: The device of the models that name none themselves, instead of that of the spec.
        store: The URL at which results are stored too, such as s3://bucket/recbias.
        progress: Whether to show the progress; by default only in a notebook.
        observer: Receives the progress of the run, instead of showing it.
    """

    overrides: Sequence[str] = ()
    out: Path | str = Path("results")
    data: Path | str | None = None
    workers: int = 1
    executor: Literal["local", "ray"] = "local"
    fresh: bool = False
    offline: bool = False
    on_error: Literal["stop", "continue"] = "continue"
    limit: int | None = None
    device: str | None = None
    store: str | None = None
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
