"""The machine: its memory, what systems differ in, and the signals that end a command.

Linux, macOS and Windows have locks, links, cores and peaks of memory of their own. Ctrl-C, SIGTERM
and a closed terminal print one line, exit with 128 + the signal and leave no process.
``handle_signals`` is for the command only: a program that calls ``recbias.run`` keeps its own
handlers.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeVar

from recbias.core.errors import RecbiasError, TooLittleMemory, WrongType

Value = TypeVar("Value")

VARIABLE = "RECBIAS_MEMORY_MB"
"""The environment variable that states the limit in MB, for systems that do not."""

_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""The limits of a container, in version 2 and version 1 of control groups."""


_ALWAYS_THERE = 2**20
"""Bytes for which the limit is not looked up: every process that runs has as many."""


_RELEASE_SECONDS = 1.0
"""How often freed memory is given back while a model is trained: it takes about 20 ms."""


_ARENA_MAX = -8
"""The number of the option ``M_ARENA_MAX`` of ``mallopt``."""


def share_heap() -> None:
    """Let all threads allocate from one heap, where the C library can (GNU).

    By default threads have heaps of their own, whose free ends ``malloc_trim`` does not give back:
    up to 64 MB of each stay after threads have worked on arrays. Heaps that are there already stay
    in use, so it is called early. The variable ``MALLOC_ARENA_MAX`` takes precedence.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def _release_freed_memory() -> None:
    """Give freed memory back to the system, where the C library can (GNU)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class FreedMemory:
    """Memory that is given back about once a second.

    Batches of different sizes leave gaps between arrays in which few arrays of the next batches
    fit, so that a process grows with each of them.
    """

    def __init__(self) -> None:
        self._due = time.monotonic() + _RELEASE_SECONDS

    def release_if_due(self) -> None:
        """Give freed memory back, if the last time is long ago."""
        if time.monotonic() >= self._due:
            _release_freed_memory()
            self._due = time.monotonic() + _RELEASE_SECONDS


def release_between(values: Iterable[Value]) -> Iterator[Value]:
    """Yield values; after each, memory that its use has freed is given back if that is due.

    >>> list(release_between("ab"))
    ['a', 'b']
    """
    freed = FreedMemory()
    for value in values:
        yield value
        freed.release_if_due()


@contextmanager
def pause_collection() -> Iterator[None]:
    """Leave the search out while many objects are made that all stay: it would find nothing.

    >>> with pause_collection():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def is_shortage(error: BaseException | None) -> bool:
    """Return whether an error, or the one that caused it, says that memory ran out.

    An error of recbias never does: it has its own remedy.

    >>> is_shortage(MemoryError()), is_shortage(OSError(errno.ENOMEM, "no memory"))
    (True, True)
    """
    while error is not None and not isinstance(error, RecbiasError):
        if isinstance(error, MemoryError):
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        error = error.__cause__ or error.__context__
    return False


def raise_shortage(error: BaseException) -> None:
    """Raise the error if it says that memory ran out."""
    if is_shortage(error):
        raise error


def describe_shortage(error: BaseException) -> tuple[str, str]:
    """Return what is said when memory ran out, and the remedy.

    >>> describe_shortage(MemoryError("Unable to allocate 4 TB"))[0]
    'out of memory: Unable to allocate 4 TB'
    """
    reason = f": {error}" if str(error) else ""
    return f"out of memory{reason}", "free some memory, or use fewer --workers"


def measure_memory_limit() -> int:
    """Return the bytes that this process may use; 0 if the system does not say (Windows).

    It is the smallest of the limits of the container, of the process (``ulimit -v``, ``-d``) and
    of the machine; ``RECBIAS_MEMORY_MB`` replaces it.

    Raises:
        WrongType: The environment variable is not a whole number above 0.
    """
    stated = os.environ.get(VARIABLE, "")
    if not stated:
        return min(_list_limits(), default=0)
    if stated.isdecimal() and int(stated):
        return int(stated) * 2**20
    message = f"the environment variable {VARIABLE} is {stated[:40]!r}"
    remedy = f"set it to a whole number of MB above 0, as in {VARIABLE}=4000, or remove it"
    raise WrongType(message, remedy=remedy)


def require_memory(n_bytes: float, content: str, *, where: str, remedy: str) -> None:
    """Refuse what cannot fit into memory.

    Args:
        n_bytes: The bytes that it needs at least.
        content: What needs them, such as ``1,000 users``.
        where: The setting that is large.
        remedy: What to do.

    Raises:
        TooLittleMemory: It needs more than this process may use.
    """
    limit = measure_memory_limit() if n_bytes > _ALWAYS_THERE else 0
    if limit and n_bytes > limit:
        message = f"{content} need at least {_render(n_bytes)}, and there are {_render(limit)}"
        raise TooLittleMemory(message, where=where, remedy=remedy)


def _list_limits() -> Iterator[int]:
    for path in _CGROUP_FILES:
        with suppress(OSError, ValueError):  # "max" where there is none
            yield int(Path(path).read_text(encoding="ascii"))
    with suppress(ImportError):  # Windows
        import resource

        limits = [
            resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
        ]
        yield from (limit for limit in limits if limit != resource.RLIM_INFINITY)
    with suppress(AttributeError, ValueError, OSError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _render(n_bytes: float) -> str:
    """Return bytes in MB or GB.

    >>> _render(3 * 2**20), _render(5e12)
    ('3 MB', '4,656.6 GB')
    """
    gigabytes = n_bytes / 2**30
    return f"{gigabytes:,.1f} GB" if gigabytes >= 1 else f"{n_bytes / 2**20:,.0f} MB"


_NOT_SUPPORTED = frozenset({errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""The error numbers of what some file systems cannot do."""


def count_cores() -> int:
    """Return the number of cores that this process may use, such as those of a SLURM job."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _where_supported() -> Iterator[None]:
    """Leave out what a file system cannot do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise


def write_to_disk(descriptor: int) -> None:
    """Write a file to the disk now; where that is impossible, the system does it later."""
    with _where_supported():
        os.fsync(descriptor)


def lock_file(descriptor: int, *, waits: bool = True) -> None:
    """Lock an open file until it is closed; nothing happens where there are no locks.

    Raises:
        BlockingIOError: Another process has locked it, and ``waits`` is false.
    """
    with suppress(ImportError), _where_supported():  # ImportError: Windows
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))


def point_link(link: Path, name: str, scratch: Path) -> None:
    """Point a link to a folder beside it; one rename replaces the link, so it is never missing.

    Where symbolic links are not allowed (Windows), it is a text file with the name.

    Args:
        link: The link.
        name: The name of the folder.
        scratch: A folder on the same disk, in which the link is created.
    """
    temporary = scratch / link.name
    try:
        temporary.symlink_to(name)
    except (OSError, NotImplementedError):
        temporary.write_text(name, encoding="utf-8")
    temporary.replace(link)


def follow_link(link: Path) -> Path:
    """Return the folder that a link of ``point_link`` leads to."""
    return link.parent / link.read_text(encoding="utf-8") if link.is_file() else link


def measure_peak_memory_mb() -> float:
    """Return the peak memory of this process since ``reset_peak_memory``, in MB.

    It is 0 where the system does not say (Windows).
    """
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text("utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ModuleNotFoundError:
        return 0.0
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / 1024 if sys.platform != "darwin" else kilobytes / 1024**2


def reset_peak_memory() -> None:
    """Give freed memory back and reset the peak of this process, where the system can (Linux).

    Without the first the peak of a stage would be that of what ran before it.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    _release_freed_memory()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


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
