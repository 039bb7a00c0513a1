"""Ranking of scores that are computed by arrays on a CPU or by tensors on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, Codes
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import OutOfRange
from recbias.core.models.devices import Device
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.models.ranking.partial_lists import PartialLists
from recbias.models.ranking.score_blocks import (
    BYTES_PER_SCORE,
    RANKING_LIMIT,
    find_history_cells,
    rank_by_scores,
    rank_users_with_history,
    validate_shape,
)
from recbias.models.ranking.tensors import Tensor, copy_to_array, is_out_of_memory, top_k
from recbias.numerics.devices import resolve_device

ScoreBlock: TypeAlias = Callable[[Mapping[str, Any], Any], Any]
"""Takes a state and user codes; returns their scores of all items, ``(b, n_items)``.

State and codes are all arrays, or all tensors on one device. The result must be a new array or
tensor, because it is overwritten. Several threads call the function at once.
"""

MAX_GPU_BLOCK = 4 * 2**30
"""Maximum number of bytes of a block on a GPU; larger blocks are not faster."""

FREE_MEMORY_SHARE = 0.5  # Share of a GPU's free memory that a block may use


@dataclass(frozen=True, eq=False)
class Ranking:
    """Computes recommendation lists from the state of a fitted model."""

    score_block: ScoreBlock  # Scores a block of users
    state: Mapping[str, AnyArray]  # The arrays of the fitted model
    device: Device  # Where scores are computed: with arrays on a CPU, with tensors elsewhere
    # Memory per score while its block is computed and ranked
    bytes_per_score: int = BYTES_PER_SCORE
    # Bytes that the blocks may use; None for half of the free memory of a GPU, and for
    # ``RANKING_LIMIT`` on other devices
    memory_limit: int | None = None
    # The arrays with a row for each item, if a slice of them gives the scores of these items
    item_arrays: tuple[str, ...] = ()

    def lists(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        """Return the ``k`` best candidates of each user who has a training history.

        Raises:
            OutOfRange: The device has too little memory to rank the items of a single user.
        """
        device = None if self.device == "cpu" else resolve_device(self.device)
        if device is not None and device.type != "cpu":
            return self.rank_on_device(device, queries, k, data)
        limit = RANKING_LIMIT if self.memory_limit is None else self.memory_limit
        return rank_by_scores(
            lambda users: self.score_block(self.state, users),
            queries,
            k,
            data,
            memory_limit=limit * BYTES_PER_SCORE // self.bytes_per_score,
            score_tile=self._score_tile if self.item_arrays else None,
        )

    def _score_tile(self, users: Codes, first: int, last: int) -> AnyArray:
        tile = {name: self.state[name][first:last] for name in self.item_arrays}
        return np.asarray(self.score_block({**self.state, **tile}, users))

    def rank_on_device(
        self, device: Any, queries: Queries, k: int, data: TrainingData
    ) -> RankedLists:
        """Return the same lists, computed with tensors on a ``torch.device``.

        The state is copied to the device once and only the lists are copied back. A block that
        does not fit into memory is retried with half as many users.
        """
        import torch

        limit = count_available_bytes(device) if self.memory_limit is None else self.memory_limit
        block_size = max(1, limit // (self.bytes_per_score * max(data.train.n_items, 1)))
        with _report_out_of_memory():
            state = {
                name: torch.tensor(array, device=device) for name, array in self.state.items()
            }
            ranker = _DeviceRanker(self.score_block, state, device, k, data)
            return rank_users_with_history(
                lambda users: ranker.rank_in_blocks(users, block_size), queries, k, data
            )


def count_available_bytes(device: Any) -> int:
    """Return the default memory limit of the blocks on a ``torch.device``."""
    import torch

    if device.type != "cuda":
        return RANKING_LIMIT
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return min(int(FREE_MEMORY_SHARE * (free + unused)), MAX_GPU_BLOCK)


@dataclass(frozen=True, eq=False)
class _DeviceRanker:
    """Ranks blocks of users on a device."""

    score_block: ScoreBlock
    state: Mapping[str, Tensor]
    device: Any
    k: int
    data: TrainingData

    def rank_in_blocks(self, users: Codes, block_size: int) -> RankedLists:
        """Return the lists of users; the block size is halved when memory runs out."""
        lists = PartialLists(users.size, self.k)
        while (start := lists.n_completed) < users.size:
            stop = min(start + block_size, users.size)
            try:
                block = self._rank_block(users[start:stop])
            except RuntimeError as error:
                if stop - start == 1 or not is_out_of_memory(error):
                    raise
                block_size = (stop - start) // 2
            else:
                lists.add(*block)
        return RankedLists(lists.items, lists.scores)

    def _rank_block(self, users: Codes) -> tuple[AnyArray, AnyArray]:
        """Return the items and scores of the lists of these users, ``(b, k)`` each."""
        import torch

        train = self.data.train
        with torch.no_grad():
            block = self.score_block(self.state, self._to_tensor(users).long())
            validate_shape(block.shape, (users.size, train.n_items))
            block[:, self._to_tensor(np.flatnonzero(~self.data.candidates))] = -np.inf
            rows, columns = find_history_cells(train.binary, users)
            block[self._to_tensor(rows), self._to_tensor(columns).long()] = -np.inf
            items, scores = top_k(block, self.k)
        return copy_to_array(items), copy_to_array(scores)

    def _to_tensor(self, array: AnyArray) -> Tensor:
        import torch

        return torch.tensor(array, device=self.device)


@contextmanager
def _report_out_of_memory() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        problem = "the device has too little memory to rank even one user at a time"
        remedy = "set device: cpu, or lower embedding_size"
        raise OutOfRange(problem, where="device", remedy=remedy) from error
