"""Lists that are stored as they come, so that an interrupted stage does not rank them again."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.stage_context import Checkpoints, get_context, report_progress, warn
from recbias.numerics.sparse.blocks import for_each_block

SILENT_SECONDS = 2.0
"""The time after which the progress is reported."""


class PartialLists:
    """The lists of the first of n rows, to which those of the next rows are added.

    Where they are the answer of a stage, the checkpoints of the stage hold them: those that an
    interrupted run had are there from the beginning. Lists that validate a training have none.

    Args:
        n: Number of rows.
        k: Number of columns of each.

    >>> lists = PartialLists(3, 1)
    >>> lists.add(np.array([[7], [5]], dtype=np.int32), np.ones((2, 1), dtype=np.float32))
    >>> lists.n_completed, lists.items.tolist()
    (2, [[7], [5], [-1]])
    """

    def __init__(self, n: int, k: int) -> None:
        self.items: Codes = np.full((n, k), -1, dtype=np.int32)
        self.scores = np.full((n, k), np.nan, dtype=np.float32)
        self.n_completed = 0
        self._began = time.monotonic()
        self._checkpoints = Checkpoints.current() if get_context().writes_lists else None
        stored = None if self._checkpoints is None else self._checkpoints.load()
        if stored is not None and {"items", "scores"} <= stored.keys():
            self._resume(stored["items"], stored["scores"])

    def add(self, items: Codes, scores: AnyArray) -> None:
        """Add the columns and scores of the next rows, ``(b, k)`` each."""
        self._fill(items, scores)
        if self._checkpoints is None:
            return
        n_completed = self.n_completed
        self._checkpoints.save_if_due(
            lambda: {"items": self.items[:n_completed], "scores": self.scores[:n_completed]}
        )
        if time.monotonic() - self._began > SILENT_SECONDS:
            report_progress("queries ranked", n_completed, len(self.items))

    def _resume(self, items: Codes, scores: AnyArray) -> None:
        """Take the lists of an interrupted run, unless they are not of this shape and type."""
        n_stored = min((*items.shape[:1], len(self.items)))
        if all(
            stored.dtype == array.dtype and stored.shape == array[:n_stored].shape
            for stored, array in ((items, self.items), (scores, self.scores))
        ):
            self._fill(items, scores)
        else:
            warn("the checkpoint holds other lists than these; all queries are ranked again")

    def _fill(self, items: Codes, scores: AnyArray) -> None:
        rows = slice(self.n_completed, self.n_completed + len(items))
        self.items[rows], self.scores[rows] = items, scores
        self.n_completed = rows.stop


def rank_in_blocks(
    rank_block: Callable[[int, int], tuple[Codes, AnyArray]], n: int, size: int, k: int
) -> RankedLists:
    """Return the lists of n rows, ranked in blocks of ``size`` by several threads.

    Args:
        rank_block: Takes the first and the end of some rows; returns their columns and scores,
            ``(b, k)`` each. A block must not depend on the result of another one.
        n: Number of rows.
        size: Number of rows of a block.
        k: List length.
    """
    lists = PartialLists(n, k)
    for_each_block(rank_block, n, size, lambda best: lists.add(*best), first=lists.n_completed)
    return RankedLists(lists.items, lists.scores)
