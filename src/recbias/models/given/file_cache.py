"""A file is read once, though it is checked before the models are trained and measured after."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from recbias.core.digests import digest_file
from recbias.core.errors import ChangedFile
from recbias.core.input_files import has_file
from recbias.core.stage_context import collect_warnings, warn

Value = TypeVar("Value")

KEPT = 8
"""How many files are kept in memory."""


def read_once(read: Callable[..., Value], path: Path, *options: str) -> Value:
    """Return what a reader makes of a file, and repeat its warnings, reading it once only.

    What the file holds counts, not its name or its time. What it was read to is shared: change
    nothing in it. A fault is not kept.

    Args:
        read: Called with the path and the options; a function of a module, no closure.
        path: The file.
        options: What else the reader is told.

    Raises:
        ChangedFile: The file was changed while it was read.
    """
    if not has_file(path):
        return read(path, *options)
    value, notes = _read(read, path, digest_file(path), *options)
    for each in notes:
        warn(each)
    return cast("Value", value)


@lru_cache(maxsize=KEPT)
def _read(
    read: Callable[..., Any], path: Path, sha: str, *options: str
) -> tuple[Any, tuple[str, ...]]:
    with collect_warnings() as notes:
        value = read(path, *options)
    if digest_file(path) != sha:
        raise ChangedFile(f"{path} changed while the run was reading it")
    return value, tuple(notes)
