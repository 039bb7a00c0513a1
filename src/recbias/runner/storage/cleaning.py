"""Removal of stored results that were not used for some time, and of replies on request."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from recbias.runner.storage.checkpoints import list_checkpoints
from recbias.runner.storage.records import RECORD
from recbias.runner.storage.store import SCRATCH, VALUES, Store, report_unwritable

UNFINISHED = "unfinished"
"""The kind under which checkpoints of interrupted stages are counted."""

Amounts: TypeAlias = dict[str, tuple[int, int]]
"""The number and the bytes of the results of each kind."""


def remove_unused(folder: Path, age: float, *, dry_run: bool) -> tuple[Amounts, Amounts]:
    """Remove every result that is older than ``age`` seconds; return what stays and what goes.

    The age of a result, and of a file that stages share, is the time since it was computed or last
    reused; that of a checkpoint is the time since it was written.

    Raises:
        Unwritable: A result cannot be removed.
    """
    store = Store(folder)
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
            with report_unwritable(folder):
                remove()
    return remaining, removed


def measure_replies(store: Store) -> tuple[int, int]:
    """Return the number and the bytes of the stored replies of language models."""
    n_replies = size = 0
    for path in store.reply_folder.glob("*.jsonl"):
        with path.open("rb") as stream:
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
    for digest, stored in store:
        size = sum(file_size for file_size, _ in stored.files.values())
        last_use = (store.path(digest) / RECORD).stat().st_mtime
        yield stored.kind, size, last_use, partial(store.remove, digest)
    scratch = store.folder / SCRATCH
    files = [(UNFINISHED, path) for path in list_checkpoints(store)]
    files += [(VALUES, path) for path in (store.folder / VALUES).glob("*")]
    files += [(SCRATCH, path) for path in (scratch.iterdir() if scratch.is_dir() else ())]
    for kind, path in files:
        status = path.stat()
        yield kind, status.st_size, status.st_mtime, partial(_remove_path, path)


def _remove_path(path: Path) -> None:
    """Remove a file, or the folder of a process that was ended."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
