"""Ctrl-C, SIGTERM and a closed terminal: one line, exit code 128 + the signal, no process left.

``handle_signals`` is for the command only: a program that calls ``recbias.run`` keeps its own
handlers. It imports little, since it has to be in place before the slow imports.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

_REASONS = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "the terminal was closed",
}
"""The signals that end a command, where the system has them, with the word for each."""

_GRACE_SECONDS = 1.5
"""How long the main thread may take to end before the process is ended."""

_TO_FIRST_COLUMN = b"\r\x1b[K\x1b[?25h"
"""Clears the line of a terminal, and shows the cursor that a progress bar has hidden."""


class _Stopped(KeyboardInterrupt):
    """A signal asks the process to end.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class _State:
    """What a command knows of the signals that it received."""

    received: int = 0  # The first signal, 0 if there was none
    is_raised: bool = False
    is_held: bool = False
    is_announced: bool = False
    grace_seconds: float = _GRACE_SECONDS


_state = _State()


def _handle_signal(number: int, _frame: FrameType | None) -> None:
    """Raise ``_Stopped`` for the first signal; later ones are left to the watching thread."""
    _state.received = _state.received or number
    if not _state.is_raised and not _state.is_held:
        _state.is_raised = True
        raise _Stopped(_state.received)


def get_exit_code(error: KeyboardInterrupt) -> int:
    """Return 128 + the signal: 130 for an interrupt."""
    return 128 + _get_number(error)


def claim_line(error: KeyboardInterrupt) -> str:
    """Return the line to print about an interruption; blank if it has been printed."""
    if _state.is_announced:
        return ""
    _state.is_announced = True
    return _describe(_get_number(error))


def raise_received() -> None:
    """Raise ``_Stopped`` again if a library has turned it into an error of its own."""
    if _state.is_raised:
        raise _Stopped(_state.received) from None


@contextmanager
def hold_signals() -> Iterator[None]:
    """Delay the signals until the block ends, so that processes start in it whole.

    They inherit that SIGINT and SIGHUP, which a terminal sends to every process, are blocked.
    """
    if sys.platform == "win32":
        yield
        return
    _state.is_held = True
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        _state.is_held = False
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if _state.received and not _state.is_raised:
        _state.is_raised = True
        raise _Stopped(_state.received)


def follow_parent() -> None:
    """Let this process, which another one has started, end with it, even with a killed one.

    It leaves to its parent what a terminal sends to every process: Ctrl-C, and the signal that it
    was closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def allow_seconds(seconds: float) -> Iterator[None]:
    """Allow the main thread more time after a signal, for replies that have been paid for."""
    previous, _state.grace_seconds = _state.grace_seconds, seconds + _GRACE_SECONDS
    try:
        yield
    finally:
        _state.grace_seconds = previous


@contextmanager
def handle_signals() -> Iterator[None]:
    """Let the signals of ``_REASONS`` end the block by ``_Stopped``, and the process in any case.

    A thread ends the process if the main thread has not ended ``_GRACE_SECONDS`` after the signal,
    for instance within compiled code, or at a second signal. A signal that the process was started
    to ignore (``nohup``) stays ignored. After the block a signal ends the process at once.
    """
    _state.received, _state.is_raised, _state.is_announced = 0, False, False
    handled = [number for number in _numbers() if signal.getsignal(number) != signal.SIG_IGN]
    report = sys.unraisablehook  # of what is raised where nothing can catch it
    sys.unraisablehook = lambda found: None if _state.received else report(found)
    if sys.platform != "win32":
        readable, writable = os.pipe()
        os.set_blocking(writable, False)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(readable,), daemon=True).start()
    for number in handled:
        signal.signal(number, _handle_signal)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_IGN if _state.received else signal.SIG_DFL)
        raise_received()  # typer turns some interrupts into exits


def _watch(readable: int) -> None:
    """End the process after a signal, if it has not ended by then."""
    numbers = _numbers()
    signals: list[int] = []
    while not signals:
        signals += [number for number in os.read(readable, 64) if number in numbers]
    begin = time.monotonic()
    os.set_blocking(readable, False)
    while len(signals) == 1 and time.monotonic() < begin + _state.grace_seconds:
        with suppress(BlockingIOError):
            signals += [number for number in os.read(readable, 64) if number in numbers]
        time.sleep(0.05)
    try:
        processes = sys.modules.get("multiprocessing.process")
        for process in processes.active_children() if processes else ():
            with suppress(OSError, ValueError):
                process.kill()
        if not _state.is_announced:
            start = _TO_FIRST_COLUMN if os.isatty(2) else b""
            os.write(2, start + _describe(signals[0]).encode() + b"\n")
    finally:
        os._exit(128 + signals[0])


def _numbers() -> set[int]:
    return {getattr(signal, name) for name in _REASONS if hasattr(signal, name)}


def _get_number(error: KeyboardInterrupt) -> int:
    return error.number if isinstance(error, _Stopped) else signal.SIGINT


def _describe(number: int) -> str:
    return f"{_REASONS[signal.Signals(number).name]}: run the same command again to resume"
