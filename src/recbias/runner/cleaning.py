"""What the store holds by kind, and taking out what was not used for a while."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

from recbias.runner.store import RECORD, Store

Amounts: TypeAlias = dict[str, tuple[int, int]]
"""Count and bytes of each kind of result."""


def sweep_out(folder: Path, age: float, *, dry_run: bool) -> tuple[Amounts, Amounts]:
    """Remove every result that is older than ``age`` seconds; return what was kept and what went.

    The age of a result is the time since it was made or last reused.
    """
    store = Store(folder)
    store.sweep()
    kept: Amounts = defaultdict(lambda: (0, 0))
    gone: Amounts = defaultdict(lambda: (0, 0))
    now = time.time()
    for digest, stored in store:
        size = sum(each for each, _ in stored.files.values())
        old = now - (store.path(digest) / RECORD).stat().st_mtime >= age
        where = gone if old else kept
        count, total = where[stored.kind]
        where[stored.kind] = (count + 1, total + size)
        if old and not dry_run:
            store.remove(digest)
    return dict(kept), dict(gone)
