"""What the store holds by kind, and taking out what was not used for a while."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TypeAlias

from recbias.runner.storage.checkpoints import checkpoints
from recbias.runner.storage.store import RECORD, SCRATCH, Store

UNFINISHED = "unfinished"
"""The kind that checkpoints are counted as: of stages that were cut off."""

Amounts: TypeAlias = dict[str, tuple[int, int]]
"""Count and bytes of each kind of result."""


def sweep_out(folder: Path, age: float, *, dry_run: bool) -> tuple[Amounts, Amounts]:
    """Remove every result that is older than ``age`` seconds; return what was kept and what went.

    The age of a result, and of a file that stages share, is the time since it was made or last
    reused, that of a checkpoint the time since it was written.
    """
    store = Store(folder)
    store.sweep()
    kept: Amounts = {}
    gone: Amounts = {}
    now = time.time()
    for digest, stored in store:
        size = sum(each for each, _ in stored.files.values())
        old = now - (store.path(digest) / RECORD).stat().st_mtime >= age
        _count(gone if old else kept, stored.kind, size)
        if old and not dry_run:
            store.remove(digest)
    shared = (folder / SCRATCH).iterdir() if (folder / SCRATCH).is_dir() else ()
    for kind, path in [
        *((UNFINISHED, each) for each in checkpoints(store)),
        *((SCRATCH, each) for each in shared),
    ]:
        facts = path.stat()
        old = now - facts.st_mtime >= age
        _count(gone if old else kept, kind, facts.st_size)
        if old and not dry_run:
            path.unlink(missing_ok=True)
    return kept, gone


def _count(amounts: Amounts, kind: str, size: int) -> None:
    count, total = amounts.get(kind, (0, 0))
    amounts[kind] = (count + 1, total + size)
