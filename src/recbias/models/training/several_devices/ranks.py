"""The processes that train one model together: data parallelism by DDP or FSDP of torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.ranking.tensors import Tensor
from recbias.models.training.fine_tuning_plan import Strategy, Task

Share: TypeAlias = tuple[AnyArray, int]
"""Texts that a process computes at once, and their weight: 0 if they only fill a gap."""


@dataclass(frozen=True)
class Replica:
    """What a process calls of a task."""

    loss: Callable[[AnyArray], Tensor]  # The sum of the losses of texts
    validate: Callable[[], float]  # The score on the validation texts
    # The context of a gradient that is added to the next one before processes exchange them
    accumulate: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Ranks:
    """This process among those that train a model; by default it is alone.

    Args:
        rank: The number of this process, from 0.
        size: The number of processes.
        strategy: How they share the model.
    """

    rank: int = 0
    size: int = 1
    strategy: Strategy = "ddp"

    @property
    def holds_state(self) -> bool:
        """Whether a checkpoint needs this process: the first, or each if weights are sharded."""
        return self.rank == 0 or self.strategy == "fsdp"

    def share(self, rows: AnyArray, n_parts: int) -> Sequence[Share]:
        """Return the texts of this process of a batch, in as many parts as in each process.

        Every ``size``-th text belongs to a process, so that texts sorted by length take alike. A
        part without texts has one of the batch with weight 0: all processes have to exchange
        gradients equally often.

        >>> [part.tolist() for part, _ in Ranks(1, 2).share(np.arange(5), 2)]
        [[1], [3]]
        >>> Ranks(1, 2).share(np.array([7]), 1)
        [(array([7]), 0)]
        """
        parts = np.array_split(
            rows[self.rank :: self.size], min(n_parts, math.ceil(rows.size / self.size))
        )
        return [(part, 1) if part.size else (rows[:1], 0) for part in parts]

    def add(self, values: Sequence[float], device: Any) -> list[float]:
        """Return the sums of values over the processes."""
        if self.size == 1:
            return list(values)
        import torch

        totals = torch.tensor(values, dtype=torch.float64, device=device)
        torch.distributed.all_reduce(totals)
        result: list[float] = totals.tolist()
        return result

    def replicate(self, task: Task) -> Replica:
        """Return what this process calls of a task; its parameters are sharded by ``fsdp``."""
        if self.size == 1:
            return Replica(task.loss, task.validation_score)
        network = _make_network(task)
        if self.strategy == "fsdp":
            _shard(network, self.size)
            return Replica(network, lambda: network(None))
        from torch.nn.parallel import DistributedDataParallel

        # an encoder may have a pooler, of which no loss depends
        replica: Any = DistributedDataParallel(network, find_unused_parameters=True)
        return Replica(replica, task.validation_score, replica.no_sync)


def _make_network(task: Task) -> Any:
    """Return a module whose output is the loss of texts, or without texts the validation score."""
    import torch

    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = task.module

        def forward(self, rows: AnyArray | None) -> Any:
            return task.validation_score() if rows is None else task.loss(rows)

    return Loss()


def _shard(network: Any, size: int) -> None:
    """Shard the layers of a network, each gathered when it computes, then the rest."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(next(network.parameters()).device.type, (size,))
    for module in reversed([*network.modules()]):
        if isinstance(module, torch.nn.ModuleList):
            for layer in module:
                fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh)
