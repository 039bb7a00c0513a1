"""The only place that catches every exception: around a stage and around a plug-in's code."""

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
from recbias.core.registry import describe_exception, list_imported_files

TRANSIENT_ERRORS = (MemoryError, OSError, TooLittleMemory)
"""Errors that may not occur again: of memory, disks and networks."""


def attempt(
    work: Callable[[], Any], *, on_lasting_failure: Callable[[], None] = lambda: None
) -> tuple[Any, Failure | None]:
    """Call a function; return its result, or the reason for its failure.

    ``on_lasting_failure`` is called after an error that would occur again. ``Unwritable`` is
    raised: without a writable disk no later stage can be stored either.
    """
    try:
        return work(), None
    except Unwritable:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  other models must still run
        if not isinstance(error, TRANSIENT_ERRORS):
            on_lasting_failure()
        return None, _describe_failure(error)


@contextmanager
def blame_plugin(call: str) -> Iterator[None]:
    """Turn an exception in ``call``, such as ``gives() of Mine``, into an error of the plug-in.

    Raises:
        BrokenContract: The code raised an error that is not one of recbias, or exited.
    """
    try:
        yield
    except (RecbiasError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        frame = _find_author_frame(error) or traceback.extract_tb(error.__traceback__)[-1]
        message = f"{call} failed: {describe_exception(error)} ({_name_frame(frame)})"
        raise BrokenContract(message, remedy="fix its code") from error


def _find_author_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost call in a plug-in's file, None if there is none."""
    files = {str(path) for path in list_imported_files()}
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files
    ]
    return frames[-1] if frames else None


def _name_frame(frame: traceback.FrameSummary) -> str:
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _describe_failure(error: BaseException) -> Failure:
    if isinstance(error, UserError):
        return Failure(str(error), error.remedy, user=True)
    if isinstance(error, MemoryError):
        message = f"out of memory: {error}" if str(error) else "out of memory"
        remedy = "lower what makes it large: batch_size, negatives, embedding_size"
        return Failure(message, remedy, user=True)
    message = str(error) if isinstance(error, RecbiasError) else describe_exception(error)
    if frame := _find_author_frame(error):
        message = f"{message} ({_name_frame(frame)}: {frame.line})"
    return Failure(message, "", traceback=traceback.format_exc())
