"""What Linux, macOS and Windows do differently."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from recbias.core.machine.memory import release_freed_memory


def is_running(pid: int) -> bool:
    """Return whether a process runs; True on Windows, where asking would interrupt it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Return whether a process has ended, but its parent has not yet asked how (Linux)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state == b"Z"


def lock_folder(folder: Path, *, waits: bool = True) -> int | None:
    """Lock a folder until the descriptor that is returned is closed, or the process ends.

    Unlike the number of a process, a lock is seen from other containers of the machine.

    Returns:
        The descriptor; None where folders cannot be opened (Windows), or it does not exist. A file
        system without locks grants every lock.

    Raises:
        BlockingIOError: Another process has locked it, and ``waits`` is false.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        pass
    return descriptor


def point_link(link: Path, name: str, scratch: Path) -> None:
    """Point a link to a folder beside it; one rename replaces the link, so it is never missing.

    Where symbolic links are not allowed (Windows), it is a text file with the name.

    Args:
        link: The link.
        name: The name of the folder.
        scratch: A folder on the same disk, which is removed also after a kill: the link is
            created there.
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


def measure_peak_memory_mb(pid: int | None = None) -> float:
    """Return the peak memory since ``reset_peak_memory`` of this process, or of another, in MB.

    It is 0 where the system does not say (Windows; of other processes, all but Linux).
    """
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid or 'self'}/status").read_text("utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    if pid is not None:
        return 0.0
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
