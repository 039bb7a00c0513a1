"""The one place where any exception is caught: the edge of a stage, and of a plug-in's code."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recbias.core.errors import (
    BrokenContract,
    RecbiasError,
    TooLittleMemory,
    Unwritable,
    UserError,
)
from recbias.core.records import Failure
from recbias.core.registry import describe_exception

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


@contextmanager
def blaming(who: str) -> Iterator[None]:
    """Turn what the code of a plug-in raises while a run is planned into an error of its user's.

    Args:
        who: What was asked, for the message: ``gives() of Mine``.

    Raises:
        BrokenContract: The code raised something else than an error of recbias, or left.
    """
    try:
        yield
    except (RecbiasError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        found = (
            f"{who} failed: {describe_exception(error)} ({Path(last.filename).name}:{last.lineno})"
        )
        raise BrokenContract(found, remedy="mend its code") from error


def _failure(error: BaseException) -> Failure:
    if isinstance(error, UserError):
        return Failure(str(error), error.remedy, user=True)
    if isinstance(error, MemoryError):
        found = "there is too little memory" + (f": {error}" if str(error) else "")
        return Failure(
            found, "lower what makes it large: batch_size, negatives, embedding_size", user=True
        )
    message = str(error) if isinstance(error, RecbiasError) else describe_exception(error)
    return Failure(message, "", traceback=traceback.format_exc())
