"""Reading files that the user names, with one error for all reasons why one cannot be read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from recbias.core.errors import MissingFile
from recbias.core.machine.shortage import is_shortage

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL})
"""Error numbers of a path at which there is nothing."""

_SAME_CHANGE_NS = 20_000_000
"""How far apart the two times of one change of a folder may be, in nanoseconds."""

_LONGEST_INSIDE = "x" * 150
"""As long as the path of a file within a folder of results."""

_ALLOW_READING = "allow it to be read: chmod u+r, and u+x for its folders"
_REMEDIES = {
    errno.ENOENT: "name a file that exists",
    errno.EACCES: _ALLOW_READING,
    errno.EPERM: _ALLOW_READING,
    errno.EISDIR: "name a file, not a folder",
    errno.ELOOP: "its symbolic links form a loop: replace the link by the file",
    errno.EIO: "the disk failed to read it: copy the file again",
}


def has_file(path: Path) -> bool:
    """Return whether a file exists; MissingFile if it is no regular one, or cannot be examined."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  Path.stat does the same
    except ValueError:  # a character that no path can contain
        return False
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise make_read_error(path, error) from error
    if stat.S_ISREG(mode):
        return True
    if stat.S_ISDIR(mode):
        raise make_read_error(path, IsADirectoryError(errno.EISDIR, "it is a folder"))
    message = "cannot be read: it is a pipe or a device, not a file"
    remedy = "write its output into a file, and name that file"
    raise MissingFile(message, where=str(path), remedy=remedy)


def read_change_times(folders: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield each folder with the nanoseconds of its last change, 0 if it does not exist."""
    for folder in folders:
        try:
            yield folder, os.stat(folder or ".").st_mtime_ns  # noqa: PTH116  much faster
        except (OSError, ValueError):
            yield folder, 0


def read_version(path: Path) -> tuple[int, ...]:
    """Return what differs if a file, or a symbolic link at its path, was written or replaced.

    A file that is read between two equal versions was not changed meanwhile, even if it has the
    same content and modification time as before: the time of the last change of its entry cannot
    be set. A file that cannot be examined has no version.
    """
    return _get_version(_examine(path))


def _examine(path: Path) -> tuple[os.stat_result, ...]:
    """Return the states of the entry at a path and of its file; none if there is no file."""
    with suppress(OSError, ValueError):
        return os.lstat(path), os.stat(path)  # noqa: PTH116  Path.stat does the same
    return ()


def _get_version(statuses: Iterable[os.stat_result]) -> tuple[int, ...]:
    return tuple(
        number
        for each in statuses
        for number in (
            *(each.st_dev, each.st_ino, each.st_size),
            *(each.st_mtime_ns, each.st_ctime_ns),
        )
    )


@dataclass(frozen=True)
class WatchedPath:
    """A file as it is at one moment, with the folders and links on the way to it.

    Args:
        statuses: The states of the entry at the path and of its file.
        folders: The mode, device, number and times of change of each folder and link.
        holders: The folders that hold the entry and the file.
    """

    statuses: tuple[os.stat_result, ...]
    folders: Mapping[str, tuple[int, ...]]
    holders: frozenset[str]

    @classmethod
    def look(cls, path: Path) -> WatchedPath:
        """Return a file as it is now; without a version if it cannot be examined."""
        folders: dict[str, tuple[int, ...]] = {}
        holders: frozenset[str] = frozenset()
        with suppress(OSError, ValueError, RuntimeError):
            absolute, resolved = path.absolute(), path.resolve()
            holders = frozenset({str(absolute.parent), str(resolved.parent)})
            for folder in {*absolute.parents, *resolved.parents}:
                status = os.lstat(folder)
                identity = status.st_mode, status.st_dev, status.st_ino
                folders[str(folder)] = (*identity, status.st_ctime_ns, status.st_mtime_ns)
        return cls(_examine(path), folders, holders)

    def is_same(self, now: WatchedPath) -> bool:
        """Return whether nothing was put in the place of the file between two moments.

        A folder that was moved away and back has a later time of change, and so has the folder
        around it, which has not if only the rights or times of the inner one were set. The time
        of change of a folder in which files were created or removed is that of its content, too.
        That of a file may differ if its rights, owner or number of links do, and no entry of its
        folder changed: the checksum, which callers compare, says that its content is the same.
        """
        if len(self.statuses) != len(now.statuses) or self.folders.keys() != now.folders.keys():
            return False
        is_held = all(self.folders[key] == now.folders[key] for key in self.holders)
        for states in zip(self.statuses, now.statuses, strict=True):
            if not _is_same_file(*states, ignores_rights=is_held):
                return False
        pairs = {key: (before, now.folders[key]) for key, before in self.folders.items()}
        changed = {key for key, (before, after) in pairs.items() if before != after}
        return all(
            _is_same_entry(*pairs[key])
            and (os.path.dirname(key) not in changed or _is_in_place(*pairs[key]))  # noqa: PTH120
            for key in changed
        )


def _is_same_file(before: os.stat_result, now: os.stat_result, *, ignores_rights: bool) -> bool:
    """Return whether a file was neither written nor replaced, as far as its state tells.

    The time of change is that of a write, too, after which the time of modification may have been
    put back; another reason for it must be visible.
    """
    if _get_version([before]) == _get_version([now]):
        return True
    has_reason = ignores_rights and _get_rights(before) != _get_rights(now)
    return has_reason and _get_version([before])[:-1] == _get_version([now])[:-1]


def _get_rights(status: os.stat_result) -> tuple[int, ...]:
    """Return what a change of an entry, and not of the content of its file, changes."""
    return status.st_mode, status.st_uid, status.st_gid, status.st_nlink


def _is_same_entry(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Return whether the kind, device and number of a folder or a link are the same."""
    return (stat.S_IFMT(before[0]), *before[1:3]) == (stat.S_IFMT(now[0]), *now[1:3])


def _is_in_place(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """Return whether a folder or a link was not moved; what a folder contains may have changed."""
    if stat.S_ISLNK(now[0]):
        return before == now
    *_, changed, content = now
    is_content = content != before[-1] and abs(changed - content) < _SAME_CHANGE_NS
    return changed == before[-2] or is_content


@contextmanager
def convert_read_errors(path: Path) -> Iterator[None]:
    """Raise the errors of the operating system in this block as ``MissingFile``."""
    try:
        yield
    except OSError as error:
        if is_shortage(error):
            raise
        raise make_read_error(path, error) from error


@contextmanager
def open_input(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading; MissingFile also for a pipe, because reading it might block."""
    with convert_read_errors(path):
        has_file(path)
        with path.open("rb") as stream:
            yield stream


def read_input(path: Path) -> bytes:
    """Return the content of a file; MissingFile if it cannot be read."""
    with open_input(path) as stream:
        return stream.read()


def make_read_error(path: Path, error: OSError) -> MissingFile:
    """Return the user's error for a file that the operating system cannot read."""
    remedy = _REMEDIES.get(error.errno or 0, "name a plain file that can be read")
    if error.errno == errno.ENOENT:
        return MissingFile("no such file", where=str(path), remedy=remedy)
    reason = error.strerror or str(error) or type(error).__name__
    return MissingFile(f"cannot be read: {reason}", where=str(path), remedy=remedy)


def to_local_path(path: Path | str) -> Path:
    """Return a path that every library reads as a path of this machine.

    A leading ``~``, if the shell left it there, is the home folder. A relative path with a colon
    becomes absolute, because pandas and pyarrow read ``s3:results`` as a URL.

    >>> to_local_path("~/results") == Path.home() / "results"
    True
    >>> to_local_path("s3:results").is_absolute()
    True

    Raises:
        MissingFile: The path, or that of a file in it, is too long for the system; or it is not
            in UTF-8, in which libraries write it.
    """
    expanded = Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for ~nobody
    try:
        str(expanded).encode()
        os.lstat(expanded / _LONGEST_INSIDE)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            remedy = "give a path with shorter names"
            raise MissingFile("the path is too long", where=str(path), remedy=remedy) from error
    except UnicodeEncodeError as error:
        remedy = "rename it, or set a locale in UTF-8, as in LC_ALL=C.UTF-8"
        raise MissingFile("the path is not in UTF-8", where=str(path), remedy=remedy) from error
    except ValueError as error:
        raise MissingFile("is no path", where=str(path), remedy="name a folder") from error
    return expanded.absolute() if ":" in str(expanded) else expanded
