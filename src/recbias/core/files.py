"""Files that the user names, digests and addresses, the network, and generators by name."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.errors import MissingFile
from recbias.core.machine import is_shortage

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL})
"""Error numbers of a path at which there is nothing."""

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
        raise _make_read_error(path, error) from error
    if stat.S_ISREG(mode):
        return True
    if stat.S_ISDIR(mode):
        raise _make_read_error(path, IsADirectoryError(errno.EISDIR, "it is a folder"))
    message = "cannot be read: it is a pipe or a device, not a file"
    remedy = "write its output into a file, and name that file"
    raise MissingFile(message, where=str(path), remedy=remedy)


def read_version(path: Path) -> tuple[int, ...]:
    """Return what differs if a file was written or replaced; nothing if there is no file.

    These are its number, its size and the time of its last change.
    """
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return ()


@contextmanager
def convert_read_errors(path: Path) -> Iterator[None]:
    """Raise the errors of the operating system in this block as ``MissingFile``."""
    try:
        yield
    except OSError as error:
        if is_shortage(error):
            raise
        raise _make_read_error(path, error) from error


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


def _make_read_error(path: Path, error: OSError) -> MissingFile:
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
    """
    expanded = Path(os.path.expanduser(path))  # noqa: PTH111  Path.expanduser raises for ~nobody
    return expanded.absolute() if ":" in str(expanded) else expanded


def to_canonical_json(value: object) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces.

    >>> to_canonical_json({"b": 1, "a": (2.0, Path("x"))})
    '{"a":[2.0,"x"],"b":1}'
    """
    return _CANONICAL.encode(value)


def compute_digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return digest_text(to_canonical_json(value))


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex; MissingFile if it cannot be read."""
    with open_input(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _to_plain(value: Any) -> object:
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if hasattr(value, "item"):
        return value.item()
    message = f"not JSON: {type(value).__name__}"
    raise TypeError(message)


_CANONICAL = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=_to_plain
)


OFFLINE = "RECBIAS_OFFLINE"
"""The environment variable that forbids the network; worker processes inherit it."""

_TRUE = {"1", "true", "yes", "on"}


@contextmanager
def forbid_network() -> Iterator[None]:
    """Forbid the network in this block and in the processes that it starts."""
    before = {name: text for name, text in os.environ.items() if name == OFFLINE}
    os.environ[OFFLINE] = "1"
    try:
        yield
    finally:
        os.environ.pop(OFFLINE, None)
        os.environ.update(before)


def is_network_forbidden() -> bool:
    """Return whether ``RECBIAS_OFFLINE`` forbids the network."""
    return os.environ.get(OFFLINE, "").lower() in _TRUE


def is_offline() -> bool:
    """Return whether ``RECBIAS_OFFLINE`` or ``HF_HUB_OFFLINE`` forbids the network."""
    return any(os.environ.get(name, "").lower() in _TRUE for name in (OFFLINE, "HF_HUB_OFFLINE"))


def derive_seed(seed: int, *names: object) -> int:
    """Return a 63-bit seed that depends on ``seed`` and the names only.

    >>> derive_seed(42, "split", 0) == derive_seed(42, "split", 0)
    True
    >>> derive_seed(42, "split", 0) == derive_seed(42, "split", 1)
    False
    """
    text = "\0".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def make_generator(seed: int, *names: object) -> np.random.Generator:
    """Return the generator of a seed and names."""
    return np.random.default_rng(derive_seed(seed, *names))
