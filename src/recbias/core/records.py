"""Records of stages in the manifest of a run and beside stored results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Failure:
    """Why a stage failed: the error, its remedy, and a traceback.

    The traceback is blank if the user's input is at fault (``user``), and not a bug or a crash.
    """

    message: str
    help: str = ""
    user: bool = False
    traceback: str = ""


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
        peak_memory_mb: Peak memory of the process during the stage.
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
    peak_memory_mb: float = 0.0
    reused: bool = False
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True)
class Stored:
    """The ``stage.json`` beside a stored result, with the size and SHA-256 of each file."""

    stage: str
    kind: str
    files: dict[str, tuple[int, str]]
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    warnings: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
