"""Removal of stored results that were not used for some time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from recbias.runner.storage.checkpoints import list_checkpoints
from recbias.runner.storage.store import RECORD, SCRATCH, Store

UNFINISHED = "unfinished"
"""The kind under which checkpoints of interrupted stages are counted."""

Amounts: TypeAlias = dict[str, tuple[int, int]]
"""The number and the bytes of the results of each kind."""


def remove_unused(folder: Path, age: float, *, dry_run: bool) -> tuple[Amounts, Amounts]:
    """Remove every result that is older than ``age`` seconds; return what stays and what goes.

    The age of a result, and of a file that stages share, is the time since it was computed or last
    reused; that of a checkpoint is the time since it was written.
    """
    store = Store(folder)
    store.sweep()
    remaining: Amounts = {}
    removed: Amounts = {}
    now = time.time()
    for digest, stored in store:
        size = sum(file_size for file_size, _ in stored.files.values())
        is_old = now - (store.path(digest) / RECORD).stat().st_mtime >= age
        _count(removed if is_old else remaining, stored.kind, size)
        if is_old and not dry_run:
            store.remove(digest)
    for kind, path in _list_other_files(store):
        status = path.stat()
        is_old = now - status.st_mtime >= age
        _count(removed if is_old else remaining, kind, status.st_size)
        if is_old and not dry_run:
            path.unlink(missing_ok=True)
    return remaining, removed


def _list_other_files(store: Store) -> Iterator[tuple[str, Path]]:
    """Yield the checkpoints and shared files of a store, each behind its kind."""
    for path in list_checkpoints(store):
        yield UNFINISHED, path
    scratch = store.folder / SCRATCH
    for path in scratch.iterdir() if scratch.is_dir() else ():
        yield SCRATCH, path


def _count(amounts: Amounts, kind: str, size: int) -> None:
    count, total = amounts.get(kind, (0, 0))
    amounts[kind] = (count + 1, total + size)
