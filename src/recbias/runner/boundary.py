"""The one place where any exception is caught: the edge of a stage."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from recbias.core.errors import RecbiasError, TooLittleMemory, Unwritable, UserError
from recbias.core.records import Failure

PASSING = (MemoryError, OSError, TooLittleMemory)
"""What may be otherwise the next time: memory, disks and networks."""


def attempt(
    work: Callable[[], Any], *, recurs: Callable[[], None] = lambda: None
) -> tuple[Any, Failure | None]:
    """Return what the work returns, or why it failed.

    A disk that cannot be written is no stage's own fault and is raised: nothing that follows could
    be kept.

    Args:
        work: What is tried.
        recurs: Called where it failed for a reason that would be the same the next time.
    """
    try:
        return work(), None
    except Unwritable:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  no model takes others along
        if not isinstance(error, PASSING):
            recurs()
        return None, _failure(error)


def _failure(error: BaseException) -> Failure:
    if isinstance(error, UserError):
        return Failure(str(error), error.remedy, user=True)
    if isinstance(error, MemoryError):
        found = "there is too little memory" + (f": {error}" if str(error) else "")
        return Failure(
            found, "lower what makes it large: batch_size, negatives, embedding_size", user=True
        )
    message = str(error) if isinstance(error, RecbiasError) else _worded(error)
    return Failure(message, "", traceback=traceback.format_exc())


def _worded(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
