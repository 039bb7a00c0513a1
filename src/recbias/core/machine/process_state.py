"""What plug-ins and libraries may change of the process is restored, and they cannot end it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NoReturn, Self

from recbias.core.errors import RecbiasError
from recbias.core.machine.shortage import raise_shortage

CODE_FAULTS = (Exception, SystemExit)
"""What code within ``protect_process`` may raise: any exception, or an exit."""

_STANDARD_DESCRIPTORS = (1, 2)

_ENDED_BY_THREAD = b"error: the process was ended by os._exit(0) in a thread of a library\n"

_end_process = os._exit


class _OpenStream:
    """A stream that stays open when somebody closes it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is buffered."""
        self._stream.flush()


@contextmanager
def protect_process() -> Iterator[None]:
    """Run code of others: its exits are errors, and what it changes of the process is put back.

    ``os._exit`` raises SystemExit, so that a stage fails and the run does not end as if it were
    done; in a child process it works as ever. The working folder, the umask and the standard
    streams are those of before afterwards, also where the code has closed or replaced them.

    Raises:
        RuntimeError: The code raised an exception that is neither an ``Exception`` nor an exit,
            or one whose message cannot be read.
    """
    with ExitStack() as undo:
        _keep_descriptors(undo)
        _keep_folder(undo)
        _keep_streams(undo)
        _keep_umask(undo)
        _refuse_exits(undo)
        fault = None
        try:
            yield
        except BaseException as error:
            has_message = _has_message(error)
            if has_message and isinstance(error, (*CODE_FAULTS, KeyboardInterrupt)):
                raise
            name = type(error).__name__
            fault = describe_exception(error) if has_message else f"{name}, without a message"
            place = error.__traceback__
        if fault is not None:  # outside of the handler: the exception is not its context
            raise RuntimeError(fault).with_traceback(place)


def describe_fault(error: BaseException) -> str:
    """Return the type and the message of an exception that is the fault of the code.

    An error of recbias, and one that says that memory ran out, are raised.
    """
    if isinstance(error, RecbiasError):
        raise error
    raise_shortage(error)
    return describe_exception(error)


def describe_exception(error: BaseException) -> str:
    """Return the type and the message of an exception.

    >>> describe_exception(KeyError("x")), describe_exception(StopIteration())
    ("KeyError: 'x'", 'StopIteration')
    """
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _has_message(error: BaseException) -> bool:
    """Return whether the exception gives its message without another exception."""
    try:
        str(error)
    except BaseException:  # noqa: BLE001  any is as good as no message
        return False
    return True


def open_standard_descriptors() -> None:
    """Open the standard descriptors that were closed (``2>&-``), to read and write nothing.

    Else the next file would be number 1 or 2, and whatever prints a line would write into it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= max(_STANDARD_DESCRIPTORS):
        os.set_inheritable(number, True)  # noqa: FBT003  it has no name
    os.close(number)


def print_to_stderr() -> None:
    """Let this process, a worker, print to standard error: its output is not the result."""
    with suppress(OSError):  # a stream is closed
        os.dup2(2, 1)


def _refuse_exits(undo: ExitStack) -> None:
    process, thread, previous = os.getpid(), threading.get_ident(), os._exit

    def exit_stage(status: int) -> NoReturn:
        if os.getpid() != process:
            _end_process(status)
        if threading.get_ident() == thread:
            raise SystemExit(status)
        if status == 0:  # would look like a run that is done
            with suppress(OSError):
                os.write(2, _ENDED_BY_THREAD)
        _end_process(status or 1)

    os._exit = exit_stage
    undo.callback(setattr, os, "_exit", previous)


def _keep_descriptors(undo: ExitStack) -> None:
    for number in _STANDARD_DESCRIPTORS:
        with suppress(OSError):  # it was closed before
            copy = os.dup(number)
            undo.callback(_restore_descriptor, number, copy)


def _restore_descriptor(number: int, copy: int) -> None:
    with suppress(OSError):  # the copy may be closed too
        try:
            os.fstat(number)
        except OSError:
            os.dup2(copy, number)
        os.close(copy)


def _keep_folder(undo: ExitStack) -> None:
    with suppress(OSError):  # it was removed
        undo.callback(_restore_folder, os.getcwd())  # noqa: PTH109  a path takes longer


def _restore_folder(folder: str) -> None:
    with suppress(OSError):
        os.chdir(folder)


def _keep_streams(undo: ExitStack) -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        undo.callback(setattr, sys, name, stream)
        if stream is not None and not isinstance(stream, _OpenStream):
            setattr(sys, name, _OpenStream(stream))


def _keep_umask(undo: ExitStack) -> None:
    mask = os.umask(0o077)
    os.umask(mask)
    undo.callback(os.umask, mask)
