"""A cache of parsed files, which are validated before training and used after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from recbias.core.digests import digest_file
from recbias.core.errors import ChangedFile
from recbias.core.input_files import has_file, read_version
from recbias.core.stage_context import collect_warnings, warn

Value = TypeVar("Value")

CACHE_SIZE = 8  # Number of files in memory


def read_once(read: Callable[..., Value], path: Path, *options: str) -> Value:
    """Return what a function reads from a file, from the cache if the content is the same.

    The warnings of the reader are repeated on every call; errors are not cached. Callers share
    the value and must not change it.

    Raises:
        ChangedFile: The file changed while it was read.
    """
    if not has_file(path):
        return read(path, *options)
    value, messages = _read(read, path, digest_file(path), *options)
    for message in messages:
        warn(message)
    return cast("Value", value)


@lru_cache(maxsize=CACHE_SIZE)
def _read(
    read: Callable[..., Any], path: Path, digest: str, *options: str
) -> tuple[Any, tuple[str, ...]]:
    version = read_version(path)
    with collect_warnings() as messages:
        value = read(path, *options)
    if read_version(path) != version or digest_file(path) != digest:
        raise ChangedFile(f"{path} changed while the run was reading it")
    return value, tuple(messages)
