"""A small process that says that memory ran out, where a library ends the command without a word.

OpenBLAS, LLVM and C++ end the process where they get no memory; no exception reaches Python.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from recbias.core.machine.shortage import measure_process_limit

LINES = (
    "error: the process was ended, probably because it is allowed too little memory "
    "({megabytes:,.0f} MB: ulimit -v or -d)\n"
    "help: allow more memory (ulimit -v unlimited), then run the same command again to resume\n"
)
"""What it prints."""

_ENDED_WELL = b"."

_to_watcher: list[int] = []


def watch_for_sudden_end() -> None:
    """Start the process where there is a limit on memory; it ends together with this one.

    It has to be called before there are threads, which a fork does not copy.
    """
    limit = measure_process_limit()
    if not limit or not hasattr(os, "fork"):
        return
    readable, writable = os.pipe()
    try:
        is_watcher = os.fork() == 0
    except OSError:  # no memory or number for another process
        return
    if not is_watcher:
        os.close(readable)
        _to_watcher.append(writable)
        return
    try:
        os.close(writable)
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        if os.read(readable, 1) != _ENDED_WELL:
            os.write(2, LINES.format(megabytes=limit / 2**20).encode())
    finally:
        os._exit(0)


def announce_end() -> None:
    """Say that this process ends by itself and has printed why."""
    with suppress(OSError, IndexError):
        os.write(_to_watcher[0], _ENDED_WELL)
