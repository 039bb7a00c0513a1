"""The only place that catches every exception: around a stage and around a plug-in's code."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from recbias.core.context import Failure
from recbias.core.errors import (
    CODE_FAULTS,
    BrokenContract,
    PluginError,
    RecbiasError,
    TooLittleMemory,
    Unwritable,
    UserError,
    describe_exception,
)
from recbias.core.machine import describe_shortage, is_shortage
from recbias.core.registry import locate_failure
from recbias.core.signals import raise_received
from recbias.core.text import make_storable

_TRANSIENT_ERRORS = (MemoryError, OSError, TooLittleMemory)
"""Errors that may not occur again: of memory, disks, networks and processes."""

_LOWER_SIZES = "lower what makes it large: batch_size, negatives, embedding_size"
"""What to do if memory ran out and more cannot be had."""

_CARD_FAILED = "CUDA error: "
"""What torch's message begins with when a GPU failed or vanished."""


def attempt(
    work: Callable[[], Any],
    *,
    on_lasting_failure: Callable[[], None] = lambda: None,
    passes_on: Callable[[BaseException], bool] = lambda _: False,
) -> tuple[Any, Failure | None]:
    """Call a function; return its result, or the reason for its failure.

    ``on_lasting_failure`` is called after an error that would occur again. Errors for which
    ``passes_on`` is true are raised, and so is ``Unwritable``: without a writable disk no later
    stage can be stored either.
    """
    try:
        return work(), None
    except Unwritable:
        raise
    except CODE_FAULTS as error:  # other models must still run
        raise_received()
        if passes_on(error):
            raise
        is_transient = isinstance(error, _TRANSIENT_ERRORS) or is_shortage(error)
        if not (is_transient or _is_of_card(error)):
            on_lasting_failure()
        return None, _make_storable(_describe_failure(error))


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
    except CODE_FAULTS as error:
        raise_received()
        if is_shortage(error):
            raise
        place = locate_failure(error) or _locate_last_call(error)
        message = f"{call} failed: {describe_exception(error)} ({place})"
        raise BrokenContract(message, remedy="fix its code") from error


def _locate_last_call(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _is_of_card(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and _CARD_FAILED in str(error)


def _make_storable(failure: Failure) -> Failure:
    """Return a failure whose texts can be written as UTF-8, and are not too long."""
    return replace(
        failure,
        message=make_storable(failure.message),
        help=make_storable(failure.help),
        traceback=make_storable(failure.traceback),
    )


def _describe_failure(error: BaseException) -> Failure:
    place = locate_failure(error)
    place = f" ({place})" if place else ""
    if isinstance(error, UserError):
        is_of_code = isinstance(error, PluginError)
        return Failure(f"{error}{place if is_of_code else ''}", error.remedy, user=True)
    if is_shortage(error):
        message, remedy = describe_shortage(error)
        return Failure(message, f"{remedy}, or {_LOWER_SIZES}", user=True)
    if _is_of_card(error):
        message = f"the GPU failed: {str(error).partition(_CARD_FAILED)[2].partition(chr(10))[0]}"
        remedy = "run the same command again to resume, on another device if it fails again"
        return Failure(message, remedy, traceback=traceback.format_exc())
    message = str(error) if isinstance(error, RecbiasError) else describe_exception(error)
    is_of_author = bool(place) and not isinstance(error, (RecbiasError, *_TRANSIENT_ERRORS))
    remedy = "fix the code of the plug-in" if is_of_author else ""
    return Failure(f"{message}{place}", remedy, traceback=traceback.format_exc())
