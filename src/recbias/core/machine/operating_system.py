"""What Linux, macOS and Windows do differently: locks, links, cores and the peak of memory."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from recbias.core.machine.memory import release_freed_memory

_NOT_SUPPORTED = frozenset({errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})
"""The error numbers of what some file systems cannot do."""


def count_cores() -> int:
    """Return the number of cores that this process may use, such as those of a SLURM job."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def write_to_disk(descriptor: int) -> None:
    """Write a file to the disk now; where that is impossible, the system does it later."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise


def lock_file(descriptor: int, *, waits: bool = True) -> None:
    """Lock an open file until it is closed; nothing happens where there are no locks.

    Raises:
        BlockingIOError: Another process has locked it, and ``waits`` is false.
    """
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise


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
    release_freed_memory()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
