"""Greedy selection of lists: each rank takes the candidate that adds most to an objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from recbias.core.arrays import AnyArray, Codes, FloatArray
from recbias.core.models.rerankers import Candidates
from recbias.numerics.sparse.blocks import block_size, map_blocks

TIE = 1e-12
"""Two gains that differ by less are equal; the candidate with the lower rank is taken."""


class Objective(Protocol):
    """What greedy selection maximises, for a block of queries whose lists grow."""

    def compute_gains(self) -> FloatArray:
        """Return what each candidate would add to the list of its query, ``float64[b, n]``."""

    def add(self, rows: AnyArray, columns: AnyArray) -> None:
        """Append a candidate to the lists of some of the queries."""


def select_greedily(
    candidates: Candidates,
    k: int,
    create_objective: Callable[[Candidates], Objective],
    *,
    bytes_per_query: int,
) -> Codes:
    """Return the positions of the selected candidates, ``int32[q, k]``, -1 at the end.

    The queries are processed in blocks, in parallel and in bounded memory.
    """

    def select_block(start: int, stop: int) -> Codes:
        block = candidates.take(start, stop)
        return _select(block, k, create_objective(block))

    n = len(candidates.lists)
    blocks = map_blocks(select_block, n, block_size(bytes_per_query), label="re-rank")
    return np.concatenate([np.empty((0, k), dtype=np.int32), *blocks])


def _select(block: Candidates, k: int, objective: Objective) -> Codes:
    is_open = block.filled.copy()
    positions = np.full((len(is_open), k), -1, dtype=np.int32)
    for rank in range(min(k, is_open.shape[1])):
        gains = np.where(is_open, objective.compute_gains(), -np.inf)
        best = np.argmax(gains >= gains.max(axis=1, keepdims=True) - TIE, axis=1)
        rows = np.flatnonzero(is_open.any(axis=1))
        columns = best[rows]
        positions[rows, rank] = columns
        is_open[rows, columns] = False
        objective.add(rows, columns)
    return positions
