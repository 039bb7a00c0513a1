"""Lists of models that learn by gradient: ranked where the model was trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.models.ranking.score_blocks import (
    BYTES_A_SCORE,
    RANKING_LIMIT,
    check_shape,
    own_cells,
    rank_by_scores,
    rank_known,
)
from recbias.models.ranking.tensor_topk import top_k
from recbias.models.ranking.tensors import Device, Tensor, array_of, device_of, is_out_of_memory

ScoreBlock: TypeAlias = Callable[[Mapping[str, Any], Any], Any]
"""Takes a state and user codes; returns their scores of all items, ``(b, n_items)``.

The state's entries are all arrays, or all tensors of one device, and so are the codes; what is
returned is fresh and is overwritten. A pure function; several threads call it at once.
"""

LARGEST_BLOCK = 4 * 2**30
"""Bytes that a block takes at most on a GPU: more rows at once are no faster."""

SHARE_OF_FREE = 0.5
"""The share of a GPU's free memory that a block may take."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """How lists are made of what a model learned.

    Args:
        score_block: Scores a block of users.
        state: What the model learned.
        device: Where scores are worked out: on a CPU with arrays, elsewhere with tensors.
        bytes_a_score: Memory that a score takes while its block is worked out and ranked.
        memory_limit: Bytes that the blocks may take; None for half of what is free on a GPU, and
            for ``RANKING_LIMIT`` elsewhere.
    """

    score_block: ScoreBlock
    state: Mapping[str, AnyArray]
    device: Device
    bytes_a_score: int = BYTES_A_SCORE
    memory_limit: int | None = None

    def lists(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the ``k`` best-scored candidates of each user who has a training history.

        Raises:
            OutOfRange: The device has too little memory to rank one user.
        """
        device = None if self.device == "cpu" else device_of(self.device)
        if device is not None and device.type != "cpu":
            return self.lists_on(device, queries, k, data)
        limit = RANKING_LIMIT if self.memory_limit is None else self.memory_limit
        return rank_by_scores(
            lambda users: self.score_block(self.state, users),
            queries,
            k,
            data,
            memory_limit=limit * BYTES_A_SCORE // self.bytes_a_score,
        )

    def lists_on(self, device: Any, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the same lists, worked out with tensors on a ``torch.device``.

        The state goes there once, and only the lists come back. A block for which there is too
        little memory is tried again with half as many users.
        """
        limit = memory_of(device) if self.memory_limit is None else self.memory_limit
        size = max(1, limit // (self.bytes_a_score * max(data.train.n_items, 1)))
        with _enough_memory():
            work = _Blocks(self.score_block, _moved(self.state, device), device, k, data)
            return rank_known(lambda users: _in_blocks(work, users, size), queries, k, data)


def memory_of(device: Any) -> int:
    """Return how many bytes the blocks on a ``torch.device`` may take, unless said otherwise."""
    import torch

    if device.type != "cuda":
        return RANKING_LIMIT
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(int(SHARE_OF_FREE * (free + kept)), LARGEST_BLOCK)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """How a block of users is ranked on a device."""

    score_block: ScoreBlock
    state: Mapping[str, Tensor]
    device: Any
    k: int
    data: TrainingData

    def ranked(self, users: Codes) -> tuple[AnyArray, AnyArray]:
        """Return the items and scores of the lists of some users, ``(b, k)`` each."""
        import torch

        train = self.data.train
        with torch.no_grad():
            block = self.score_block(self.state, self._tensor(users).long())
            check_shape(block.shape, (users.size, train.n_items))
            block[:, self._tensor(np.flatnonzero(~self.data.candidates))] = -np.inf
            rows, items = own_cells(train.binary, users)
            block[self._tensor(rows), self._tensor(items).long()] = -np.inf
            found, scores = top_k(block, self.k)
        return array_of(found), array_of(scores)

    def _tensor(self, array: AnyArray) -> Tensor:
        import torch

        return torch.tensor(array, device=self.device)


def _in_blocks(work: _Blocks, users: Codes, size: int) -> RankedLists:
    """Return the lists of users, ``size`` of them at a time, fewer where memory runs out."""
    items = np.empty((users.size, work.k), dtype=np.int32)
    scores = np.empty((users.size, work.k), dtype=np.float32)
    start = 0
    while start < users.size:
        stop = min(start + size, users.size)
        try:
            items[start:stop], scores[start:stop] = work.ranked(users[start:stop])
            start = stop
        except RuntimeError as error:
            if stop - start == 1 or not is_out_of_memory(error):
                raise
            size = (stop - start) // 2
    return RankedLists(items, scores)


def _moved(state: Mapping[str, AnyArray], device: Any) -> Mapping[str, Tensor]:
    import torch

    return {name: torch.tensor(array, device=device) for name, array in state.items()}


@contextmanager
def _enough_memory() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        found = "the device has too little memory to rank even one user at a time"
        remedy = "set device: cpu, or lower embedding_size"
        raise OutOfRange(found, where="device", remedy=remedy) from error
