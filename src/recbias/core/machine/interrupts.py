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
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ClassVar

from recbias.core.machine.sudden_end import announce_end

REASONS = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "the terminal was closed",
}
"""The signals that end a command, where the system has them, with the word for each."""

GRACE_SECONDS = 1.5
"""How long the main thread may take to end before the process is ended."""

_OF_SEMAPHORES = "ignore:resource_tracker:UserWarning"
"""Hides what Python says of the semaphores of a process that was ended, and removes, as a value
of ``-W`` that the processes started by this one inherit."""

_TO_FIRST_COLUMN = b"\r\x1b[K\x1b[?25h"
"""Clears the line of a terminal, and shows the cursor that a progress bar has hidden."""


class Stopped(KeyboardInterrupt):
    """A signal asks the process to end.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class SignalState:
    """What this process knows of the signals that it received."""

    current: ClassVar[SignalState | None] = None
    """The state while ``handle_signals`` is in effect."""

    received: int = 0
    """The first signal; 0 if there was none."""

    is_announced: bool = False
    is_raised: bool = False
    is_held: bool = False
    grace_seconds: float = GRACE_SECONDS
    lock: threading.Lock = field(default_factory=threading.Lock)

    def claim_line(self) -> bool:
        """Return whether the line is still to be printed, and mark it as printed."""
        with self.lock:
            is_first, self.is_announced = not self.is_announced, True
        return is_first

    def raise_stopped(self) -> None:
        """Raise the first signal, once: a second exception would leave a traceback."""
        if self.received and not self.is_raised and not self.is_held:
            self.is_raised = True
            raise Stopped(self.received)


def handle_signal(number: int, _frame: FrameType | None) -> None:
    """Raise ``Stopped`` for the first signal; later ones are left to the watching thread."""
    state = SignalState.current
    if state is None:
        raise Stopped(number)
    state.received = state.received or number
    state.raise_stopped()


def get_exit_code(error: KeyboardInterrupt) -> int:
    """Return 128 + the signal: 130 for an interrupt."""
    return 128 + (error.number if isinstance(error, Stopped) else signal.SIGINT)


def describe_signal(number: int) -> str:
    """Return the line that is printed."""
    return f"{REASONS[signal.Signals(number).name]}: run the same command again to resume"


def claim_line(error: KeyboardInterrupt) -> str:
    """Return the line to print about an interruption; blank if it has been printed."""
    state = SignalState.current
    if state is not None and not state.claim_line():
        return ""
    return describe_signal(error.number if isinstance(error, Stopped) else signal.SIGINT)


def raise_received() -> None:
    """Raise ``Stopped`` again if a library has turned it into an error of its own."""
    state = SignalState.current
    if state is not None and state.is_raised:
        raise Stopped(state.received) from None


@contextmanager
def hold_signals() -> Iterator[None]:
    """Delay the signals until the block ends; processes that start in it never receive two.

    They inherit that SIGINT and SIGHUP, which a terminal sends to every process, are blocked.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if sys.platform == "win32":
        yield
        return
    state, previous = SignalState.current, signal.getsignal(signal.SIGINT)
    pending: list[int] = []
    if state is not None and is_main:
        state.is_held = True
    elif is_main and callable(previous):
        signal.signal(signal.SIGINT, lambda number, _: pending.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        if state is not None and is_main:
            state.is_held = False
        elif is_main and callable(previous):
            signal.signal(signal.SIGINT, previous)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if state is not None and is_main:
        state.raise_stopped()
    if pending:
        signal.raise_signal(signal.SIGINT)


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
    state = SignalState.current
    if state is None:
        yield
        return
    previous, state.grace_seconds = state.grace_seconds, seconds + GRACE_SECONDS
    try:
        yield
    finally:
        state.grace_seconds = previous


@contextmanager
def handle_signals() -> Iterator[None]:
    """Let the signals of ``REASONS`` end the block by ``Stopped``, and the process in any case.

    A thread ends the process if the main thread has not ended ``GRACE_SECONDS`` after the signal,
    for instance within compiled code, or at a second signal. A signal that the process was started
    to ignore (``nohup``) stays ignored. After the block a signal ends the process at once.
    """
    numbers = [getattr(signal, name) for name in REASONS if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    state = SignalState.current = SignalState()
    sys.warnoptions.append(_OF_SEMAPHORES)
    report = sys.unraisablehook

    def report_unless_stopped(unraisable: Any) -> None:
        if not (state.received and isinstance(unraisable.exc_value, KeyboardInterrupt)):
            report(unraisable)

    sys.unraisablehook = report_unless_stopped
    if sys.platform != "win32":
        _start_watching(state)
    for number in handled:
        signal.signal(number, handle_signal)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_IGN if state.received else signal.SIG_DFL)
        raise_received()  # typer turns some interrupts into exits


def _start_watching(state: SignalState) -> None:
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(state, readable), daemon=True).start()


def _watch(state: SignalState, readable: int) -> None:
    """End the process after a signal, if it has not ended by then."""
    numbers = {getattr(signal, name) for name in REASONS if hasattr(signal, name)}
    signals: list[int] = []
    begin = time.monotonic()
    while not signals:
        signals += [number for number in os.read(readable, 64) if number in numbers]
        begin = time.monotonic()
    state.received = state.received or signals[0]
    os.set_blocking(readable, False)
    while len(signals) == 1 and time.monotonic() < begin + state.grace_seconds:
        with suppress(BlockingIOError):
            signals += [number for number in os.read(readable, 64) if number in numbers]
        time.sleep(0.05)
    try:
        _kill_workers()
        if state.claim_line():
            start = _TO_FIRST_COLUMN if os.isatty(2) else b""
            os.write(2, start + describe_signal(signals[0]).encode() + b"\n")
    finally:
        announce_end()
        os._exit(128 + signals[0])


def _kill_workers() -> None:
    """Kill the processes that this one has started, also while the main thread ends them."""
    processes = sys.modules.get("multiprocessing.process")
    for process in processes.active_children() if processes else ():
        with suppress(OSError, ValueError):
            process.kill()
