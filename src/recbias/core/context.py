"""The stage that runs: where its warnings, facts, progress and checkpoints go, and its record.

Code that trains or measures calls ``warn``, ``record_fact``, ``report_progress`` and
``Checkpoints.current`` without knowing the listener. The executor opens one ``stage_context``
around each stage and stores what arrives there. Outside a stage there is no listener: warnings
are then raised by ``warnings.warn`` and the rest is dropped.
"""

from __future__ import annotations

import time
import warnings as python_warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from recbias.core.dataset import AnyArray
from recbias.core.plugins import StoredValues


@dataclass(frozen=True)
class Failure:
    """Why a stage failed: the error, its remedy, and a traceback.

    The traceback is blank if the user's input is at fault (``user``), and not a bug or a crash.

    Args:
        because: The title of the failed stage for which this one was skipped; blank if it failed.
    """

    message: str
    help: str = ""
    user: bool = False
    traceback: str = ""
    because: str = ""


@dataclass(frozen=True)
class StageRecord:
    """The record of one stage in one run.

    Args:
        stage: The title of the stage.
        kind: ``dataset``, ``split``, ``queries``, ``trial``, ``search``, ``fit``, ``answer``,
            ``measure`` and so on.
        digest: The content address of its result.
        dataset: Label of the dataset, blank if it does not apply, like the next three.
        fold: The fold, from 1.
        seconds: Wall time, 0 if the result was reused.
        resumed_seconds: The part of the wall time that an interrupted earlier run spent.
        peak_memory_mb: Peak memory of the process during the stage; None if it was reused, or the
            system does not say.
        sizes: The sizes of what it read and made: users, items, interactions, queries, bytes.
        reused: Whether the result was in the store.
        warnings: The warnings of the stage, also if it was reused.
        facts: The facts recorded by the stage, such as the revision of a language model.
    """

    stage: str
    kind: str
    digest: str
    dataset: str = ""
    seed: int | None = None
    fold: int | None = None
    model: str = ""
    seconds: float = 0.0
    resumed_seconds: float = 0.0
    peak_memory_mb: float | None = None
    reused: bool = False
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True)
class Stored:
    """The ``stage.json`` beside a stored result, with the size and SHA-256 of each file.

    ``subject`` is the name of its plug-in, ``settings`` the digest of the settings: stages of the
    same kind and subject take a time that grows with the sizes.
    """

    stage: str
    kind: str
    files: dict[str, tuple[int, str]]
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    warnings: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    subject: str = ""
    settings: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)


class _FailureSummary(NamedTuple):
    """Failures of a manifest that have the same message.

    Args:
        stage: The title of the first stage.
        message: The message, with the number of the other stages and of the skipped ones.
        help: The remedy, or blank.
    """

    stage: str
    message: str
    help: str


def summarize_failures(failures: Sequence[Mapping[str, Any]]) -> list[_FailureSummary]:
    """Return the failures of a manifest, those with the same message and remedy once.

    >>> failed = [{"stage": f"fit {name}", "message": "boom"} for name in "AB"]
    >>> skipped = {"stage": "recommend B", "message": "skipped because ...", "because": "fit B"}
    >>> summarize_failures([*failed, skipped])[0].message
    'boom; 1 more stage failed in the same way; 1 stage was skipped because of it'
    """
    stages: dict[tuple[str, str], list[str]] = {}
    for failure in failures:
        if not failure.get("because"):
            key = (str(failure.get("message", "")), failure.get("help") or "")
            stages.setdefault(key, []).append(str(failure.get("stage", "a stage")))
    n_skipped = Counter(failure.get("because") for failure in failures)
    summaries = []
    for (message, remedy), titles in stages.items():
        n_more, n_later = len(titles) - 1, sum(n_skipped[title] for title in set(titles))
        parts = [message]
        if n_more:
            parts.append(f"{n_more:,} more stage{'s' * (n_more > 1)} failed in the same way")
        if n_later:
            verb = "stages were" if n_later > 1 else "stage was"
            parts.append(f"{n_later:,} {verb} skipped because of it")
        summaries.append(_FailureSummary(titles[0], "; ".join(parts), remedy))
    return summaries


T = TypeVar("T")

Fact: TypeAlias = str | int | float | bool | None
"""A value recorded with a stage, such as the revision of a language model."""

ProgressListener: TypeAlias = Callable[[str, int, int], None]
"""Called with (task, completed steps, total steps)."""

_ValidationListener: TypeAlias = Callable[[int, float], None]
"""Called with (epoch, validation score); raises ``Pruned`` to end the training."""

CHECKPOINT_TIME_SHARE = 0.05
"""The share of the training time that may be spent on writing checkpoints."""

MIN_CHECKPOINT_INTERVAL = 1.0
"""The least number of seconds between two checkpoints."""


class Pruned(Exception):
    """The training is ended because other settings were better at this epoch."""


class _CheckpointStore(Protocol):
    """Stores the checkpoint of one stage."""

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last complete checkpoint, None if there is none.

        A stage calls this once, at its start; a later call is about the next part of the stage.
        """

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        """Replace the last checkpoint; the write is atomic."""


@dataclass(frozen=True)
class _StageContext:
    """Where the output of the running stage other than its result goes.

    Args:
        warnings: Collects warnings; None outside a stage.
        facts: Collects facts; None to drop them.
        on_progress: Receives progress; None to drop it.
        on_validation: Receives the validation score of each epoch; None outside a search.
        checkpoint_store: Stores the checkpoint of the stage; None to write no checkpoints.
        reply_folder: Holds the replies of language models; None for a temporary folder.
        run_id: Names the run, whose processes share the budget of a language model.
        open_values: Returns a detector's stored values of texts by its digest; None stores none.
        writes_lists: Whether lists that are ranked now are an answer, rather than a validation.
    """

    warnings: list[str] | None = None
    facts: dict[str, Fact] | None = None
    on_progress: ProgressListener | None = None
    on_validation: _ValidationListener | None = None
    checkpoint_store: _CheckpointStore | None = None
    reply_folder: Path | None = None
    run_id: str = ""
    open_values: Callable[[str], StoredValues] | None = None
    writes_lists: bool = False


_NO_STAGE = _StageContext()
_current: ContextVar[_StageContext] = ContextVar("stage_context", default=_NO_STAGE)


@contextmanager
def stage_context(**changes: Any) -> Iterator[_StageContext]:
    """Change fields of the context inside the block; the other fields stay as they are.

    >>> with stage_context(warnings=[], facts={}) as context:
    ...     warn("3 queries have no list")
    ...     record_fact("masked_share", 0.1)
    >>> context.warnings, context.facts
    (['3 queries have no list'], {'masked_share': 0.1})
    """
    context = replace(_current.get(), **changes)
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings of the block; nested blocks collect their own.

    >>> with collect_warnings() as warnings:
    ...     warn("3 queries have no list")
    >>> warnings
    ['3 queries have no list']
    """
    warnings: list[str] = []
    with stage_context(warnings=warnings):
        yield warnings


@contextmanager
def collect_facts() -> Iterator[dict[str, Fact]]:
    """Collect the facts of the block; nested blocks collect their own."""
    facts: dict[str, Fact] = {}
    with stage_context(facts=facts):
        yield facts


def warn(message: str) -> None:
    """Record a warning with the running stage; outside a stage, raise it by ``warnings.warn``."""
    warnings = _current.get().warnings
    if warnings is None:
        python_warnings.warn(message, UserWarning, stacklevel=2)
    else:
        warnings.append(message)


def record_fact(name: str, value: Fact) -> None:
    """Record a fact with the running stage; outside a stage it is dropped."""
    facts = _current.get().facts
    if facts is not None:
        facts[name] = value


def get_context() -> _StageContext:
    """Return the context of the running stage; outside a stage, one without listeners."""
    return _current.get()


def report_progress(task: str, completed: int, total: int) -> None:
    """Report that ``completed`` of ``total`` steps of a task are complete."""
    if (listener := _current.get().on_progress) is not None:
        listener(task, completed, total)


def track_progress(values: Sequence[T], task: str) -> Iterator[T]:
    """Yield the values and report each as a step of the task."""
    report_progress(task, 0, len(values))
    for completed, value in enumerate(values, start=1):
        yield value
        report_progress(task, completed, len(values))


def has_validation_listener() -> bool:
    """Return whether the validation score of each epoch is used outside the model."""
    return _current.get().on_validation is not None


def report_validation(epoch: int, score: float) -> None:
    """Report the validation score after an epoch; higher is better.

    Raises:
        Pruned: The training is to end here.
    """
    listener = _current.get().on_validation
    if listener is not None:
        listener(epoch, score)


@dataclass
class Checkpoints:
    """The checkpoints of a training; without a store none is written."""

    store: _CheckpointStore | None
    due: float  # The earliest time of the next one, by ``time.monotonic``

    @classmethod
    def current(cls) -> Checkpoints:
        """Return the checkpoints of the running stage."""
        store = _current.get().checkpoint_store
        return cls(store, time.monotonic() + MIN_CHECKPOINT_INTERVAL)

    @property
    def is_due(self) -> bool:
        """Whether the last checkpoint is old enough for the next one."""
        return self.store is not None and time.monotonic() >= self.due

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last checkpoint, None if the training starts from the beginning."""
        return self.store.load() if self.store is not None else None

    def save_if_due(self, make_checkpoint: Callable[[], Mapping[str, AnyArray]]) -> None:
        """Write a checkpoint, as ``save``, if the last one is old enough."""
        if self.is_due:
            self.save(make_checkpoint)

    def save(self, make_checkpoint: Callable[[], Mapping[str, AnyArray]]) -> None:
        """Write the arrays, none of objects, from which the training can be resumed."""
        start = time.monotonic()
        arrays = make_checkpoint()
        if self.store is not None:
            self.store.save(arrays)
        end = time.monotonic()
        self.due = end + max(MIN_CHECKPOINT_INTERVAL, (end - start) / CHECKPOINT_TIME_SHARE)
