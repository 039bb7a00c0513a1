"""Files of the user's: whether one is there, and what is said where it cannot be read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from recbias.core.errors import MissingFile

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL})
"""What the system says of a path at which nothing is."""

_REMEDIES = {
    errno.ENOENT: "name a file that is there",
    errno.EACCES: "allow it to be read: chmod u+r, and u+x for its folders",
    errno.EPERM: "allow it to be read: chmod u+r, and u+x for its folders",
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "its links lead in a circle: put the file itself there",
    errno.EIO: "the disk does not give it: copy the file anew",
}


def has_file(path: Path) -> bool:
    """Return whether a file is there that may be opened, False where nothing is.

    Raises:
        MissingFile: Something else is there, a folder or a pipe, or nobody may look.
    """
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  Path.stat does the same
    except ValueError:  # a character that no path can have
        return False
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise unreadable(path, error) from error
    if stat.S_ISREG(mode):
        return True
    if stat.S_ISDIR(mode):
        raise unreadable(path, IsADirectoryError(errno.EISDIR, "it is a folder"))
    found = "cannot be read: it is a pipe or a device, not a file"
    raise MissingFile(found, where=str(path), remedy="write what it gives into a file, name that")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say of what is read in this block that it cannot be read.

    Raises:
        MissingFile: It cannot.
    """
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


@contextmanager
def opened_input(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading; a pipe is refused rather than waited for.

    Raises:
        MissingFile: It is not there, or cannot be read.
    """
    with reading(path):
        has_file(path)
        with path.open("rb") as stream:
            yield stream


def unreadable(path: Path, error: OSError) -> MissingFile:
    """Return what is said of a file that the system does not give."""
    remedy = _REMEDIES.get(error.errno or 0, "name a plain file that can be read")
    if error.errno == errno.ENOENT:
        return MissingFile("no such file", where=str(path), remedy=remedy)
    reason = error.strerror or str(error) or type(error).__name__
    return MissingFile(f"cannot be read: {reason}", where=str(path), remedy=remedy)
