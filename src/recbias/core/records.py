"""Records of stages in the manifest of a run and beside stored results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


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
            ``measure`` and so on: the keys of ``FORMATS``.
        digest: The content address of its result.
        dataset: Label of the dataset, blank if it does not apply, like the next three.
        fold: The fold, from 1.
        seconds: Wall time, 0 if the result was reused.
        resumed_seconds: The part of the wall time that an interrupted earlier run spent.
        peak_memory_mb: Peak memory of the process during the stage; None if it was reused, or the
            system does not say.
        cost: What it cost beside time and memory (``runner.stage_cost``); empty if not known.
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
    cost: Mapping[str, float | None] = field(default_factory=dict)
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
    cost: Mapping[str, float | None] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


class FailureSummary(NamedTuple):
    """Failures of a manifest that have the same message.

    Args:
        stage: The title of the first stage.
        message: The message, with the number of the other stages and of the skipped ones.
        help: The remedy, or blank.
    """

    stage: str
    message: str
    help: str


def summarize_failures(failures: Sequence[Mapping[str, Any]]) -> list[FailureSummary]:
    """Return the failures of a manifest, those with the same message and remedy once.

    >>> failed = [{"stage": f"fit {name}", "message": "boom"} for name in "AB"]
    >>> skipped = {"stage": "ask B", "message": "skipped because ...", "because": "fit B"}
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
        summaries.append(FailureSummary(titles[0], "; ".join(parts), remedy))
    return summaries
