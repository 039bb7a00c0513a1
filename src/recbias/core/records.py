"""What is written down of a stage: enough to trust its result and to make it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Failure:
    """Why a stage did not finish.

    Args:
        message: What was found.
        help: What would do.
        user: Whether the user's input is at fault; a bug or a crash is not.
        traceback: Where it happened; blank where the user's input is at fault.
    """

    message: str
    help: str = ""
    user: bool = False
    traceback: str = ""


@dataclass(frozen=True)
class StageRecord:
    """What happened to one stage in one run.

    Args:
        stage: Its title.
        kind: ``dataset``, ``split``, ``queries``, ``trial``, ``search``, ``fit``, ``answer``,
            ``measure`` and so on: the keys of ``FORMATS``.
        digest: The address of its result.
        dataset: Label of the dataset, blank where it does not apply; so are the next three.
        seed: The experiment seed.
        fold: The fold, from 1.
        model: Label of the model.
        seconds: Wall time of the work, 0 where it was reused.
        resumed_seconds: How many of them an earlier run had spent that was cut off.
        peak_memory_mb: Peak memory of the process while it worked.
        reused: Whether the result was in the store.
        warnings: What the stage warned of, also when it was reused.
        facts: What else is known of it, also when it was reused: the revision of a language model.
        failure: Why it did not finish, or None.
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

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Stored:
    """What lies beside a stored result, in its ``stage.json``.

    Args:
        stage: Title of the stage that made it.
        kind: Its kind.
        files: Size and SHA-256 of each file.
        seconds: Wall time of the work.
        peak_memory_mb: Peak memory of the process while it worked.
        warnings: What the stage warned of.
        facts: What else is known of it.
    """

    stage: str
    kind: str
    files: dict[str, tuple[int, str]]
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    warnings: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
