"""The process that the user starts: it runs the command in another one, and reports its end.

OpenBLAS, LLVM and C++ end a process where they get no memory, Rust where it gets none or has a
fault, and the system one that reads what is not its own; no exception reaches Python.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

from recbias.core.machine.shortage import measure_process_limit

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
"""The signals that end a command, where the system has them."""

TO_FIRST_COLUMN = b"\r\x1b[K\x1b[?25h"
"""Clears the line of a terminal, and shows the cursor that a progress bar has hidden."""

_OUT_OF_MEMORY = (
    "error: the process was ended, probably because it is allowed too little memory "
    "({megabytes:,.0f} MB: ulimit -v or -d)\n"
    "help: allow more memory (ulimit -v unlimited), then run the same command again to resume\n"
)
_KILLED = (
    "error: the process was killed (signal 9), probably because memory ran out\n"
    "help: give it more memory, or use a smaller dataset; the same command resumes\n"
)
_ENDED = (
    "error: a library ended the process ({how})\n"
    "help: run the same command again to resume; a run with --workers 2 says in which stage, and "
    "finishes the others\n"
)

_ENDED_WELL, _RECEIVED = b".", b"s"
_GRACE_SECONDS = 0.2
"""How long the command may take to say that it has received a signal, too."""

_to_watcher: list[int] = []


def watch_for_sudden_end() -> None:
    """Go on in a child process; this one waits for it and ends with its exit code.

    If the child ends without having said why, this process says so, with exit code 1. It has to
    be called before there are threads, which a fork does not copy.
    """
    if not hasattr(os, "fork"):
        return
    from_command, to_watcher = os.pipe()
    from_watcher, to_command = os.pipe()
    try:
        command = os.fork()
    except OSError:  # no memory or number for another process
        return
    if not command:
        os.close(from_command)
        os.close(to_command)
        _to_watcher.append(to_watcher)
        with suppress(RuntimeError):  # no memory for a thread
            threading.Thread(target=_end_with_watcher, args=(from_watcher,), daemon=True).start()
        return
    code = 1
    try:
        os.close(to_watcher)
        os.close(from_watcher)
        code = _Watcher(command, from_command).wait()
    finally:
        os._exit(code)


def announce_end() -> None:
    """Say that this process ends by itself and has printed why."""
    with suppress(OSError, IndexError):
        os.write(_to_watcher[0], _ENDED_WELL)


def announce_signals(number: int) -> None:
    """Say that this process has received some signals, which need not be forwarded to it."""
    with suppress(OSError, IndexError):
        os.write(_to_watcher[0], _RECEIVED * number)


def kill_workers() -> None:
    """Kill the processes that this one has started, also while the main thread ends them."""
    processes = sys.modules.get("multiprocessing.process")
    for process in processes.active_children() if processes else ():
        with suppress(OSError, ValueError):
            process.kill()


def _end_with_watcher(from_watcher: int) -> None:
    """End this process if the one that the user started was killed."""
    with suppress(OSError):
        os.read(from_watcher, 1)
    kill_workers()
    os._exit(128 + signal.SIGTERM)


@dataclass
class _Watcher:
    """Waits for the process of the command, and forwards the signals that it does not receive."""

    command: int
    from_command: int
    n_signals: int = 0
    n_received: int = 0
    has_ended_well: bool = False

    def wait(self) -> int:
        os.set_blocking(self.from_command, False)
        for name in SIGNALS:
            if signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:
                signal.signal(getattr(signal, name), self._forward)
        _, status = os.waitpid(self.command, 0)
        self._read()
        code = os.waitstatus_to_exitcode(status)
        numbers = [getattr(signal, name) for name in SIGNALS]
        if -code in numbers:  # before the command had its handlers, or after it had ended
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        if code >= 0 and (self.has_ended_well or code - 128 in numbers):
            return code
        start = TO_FIRST_COLUMN if os.isatty(2) else b""
        with suppress(OSError):
            os.write(2, start + _describe_end(code).encode())
        return 1

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        """Forward a signal to the command, unless the terminal has sent it to both processes."""
        self.n_signals += 1
        end = time.monotonic() + _GRACE_SECONDS
        while self.n_received < self.n_signals and time.monotonic() < end:
            time.sleep(0.01)
            self._read()
        if self.n_received < self.n_signals:
            with suppress(ProcessLookupError):
                os.kill(self.command, number)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while message := os.read(self.from_command, 64):
                self.n_received += message.count(_RECEIVED)
                self.has_ended_well |= _ENDED_WELL in message


def _describe_end(code: int) -> str:
    if limit := measure_process_limit():
        return _OUT_OF_MEMORY.format(megabytes=limit / 2**20)
    if code == -signal.SIGKILL:
        return _KILLED
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return _ENDED.format(how=how)
