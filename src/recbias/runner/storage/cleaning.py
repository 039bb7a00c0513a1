"""Removal of stored results that were not used for some time, and of replies on request."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from recbias.core.input_files import open_input
from recbias.runner.storage.checkpoints import list_checkpoints
from recbias.runner.storage.records import RECORD
from recbias.runner.storage.store import SCRATCH, VALUES, Store, report_unwritable

UNFINISHED = "unfinished"
"""The kind under which checkpoints of interrupted stages are counted."""

DAMAGED = "damaged"
"""The kind under which results are counted that cannot be read."""

Amounts: TypeAlias = dict[str, tuple[int, int]]
"""The number and the bytes of the results of each kind."""


def remove_unused(folder: Path, age: float, *, dry_run: bool) -> tuple[Amounts, Amounts]:
    """Remove every result that is older than ``age`` seconds; return what stays and what goes.

    The age of a result, and of a file that stages share, is the time since it was computed or last
    reused; that of a checkpoint is the time since it was written.

    Raises:
        Unwritable: The store cannot be read, or a result cannot be removed.
    """
    store = Store(folder)
    with report_unwritable(folder):
        return _remove_unused(store, age, dry_run=dry_run)


def _remove_unused(store: Store, age: float, *, dry_run: bool) -> tuple[Amounts, Amounts]:
    store.sweep()
    remaining: Amounts = {}
    removed: Amounts = {}
    now = time.time()
    for kind, size, last_use, remove in _list_entries(store):
        is_old = now - last_use >= age
        amounts = removed if is_old else remaining
        count, total = amounts.get(kind, (0, 0))
        amounts[kind] = (count + 1, total + size)
        if is_old and not dry_run:
            remove()
    return remaining, removed


def measure_replies(store: Store) -> tuple[int, int]:
    """Return the number and the bytes of the stored replies of language models.

    Raises:
        MissingFile: A file of replies cannot be read.
    """
    n_replies = size = 0
    for path in store.reply_folder.glob("*.jsonl"):
        with open_input(path) as stream:
            n_replies += sum(1 for _ in stream)
        size += path.stat().st_size
    return n_replies, size


def remove_replies(store: Store) -> None:
    """Remove the stored replies of language models.

    Raises:
        Unwritable: They cannot be removed.
    """
    with report_unwritable(store.reply_folder):
        shutil.rmtree(store.reply_folder)


def _list_entries(store: Store) -> Iterator[tuple[str, int, float, Callable[[], None]]]:
    """Yield the kind, bytes, last use and removal of each result, checkpoint and shared file."""
    for path in store.folder.glob("??/*"):
        record = store.record(path.name) if path == store.path(path.name) else None
        with suppress(FileNotFoundError):  # another process removed it
            if record is not None:
                size = sum(file_size for file_size, _ in record.files.values())
                last_use = (path / RECORD).stat().st_mtime
                yield record.kind, size, last_use, partial(store.remove, path.name)
            else:
                size, last_use = _measure_path(path)
                yield DAMAGED, size, last_use, partial(_remove_path, path)
    scratch = store.folder / SCRATCH
    files = [(UNFINISHED, path) for path in list_checkpoints(store)]
    files += [(VALUES, path) for path in (store.folder / VALUES).glob("*")]
    files += [(SCRATCH, path) for path in scratch.glob("*")]
    for kind, path in files:
        with suppress(FileNotFoundError):
            size, last_use = _measure_path(path)
            yield kind, size, last_use, partial(_remove_path, path)


def _measure_path(path: Path) -> tuple[int, float]:
    """Return the bytes and the last change of a file, of a link, or of the files of a folder."""
    status = path.lstat()
    is_folder = stat.S_ISDIR(status.st_mode)
    sizes = [file.lstat().st_size for file in path.rglob("*")] if is_folder else [status.st_size]
    return sum(sizes), status.st_mtime


def _remove_path(path: Path) -> None:
    """Remove a file, a link, or the folder of a process that was ended."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
