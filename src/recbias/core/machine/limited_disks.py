"""File systems without locks, or that cannot be told to write to the disk now."""

from __future__ import annotations

import errno
import os
import sys

NOT_SUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
)
"""The error numbers of what such a file system cannot do."""


def write_to_disk(descriptor: int) -> None:
    """Write a file to the disk now; where that is impossible, the system does it later."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
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
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
