"""What one of several processes does that fine-tune a model together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import UserError
from recbias.core.machine.interrupts import follow_parent
from recbias.core.models.devices import is_cuda
from recbias.core.registry import import_files
from recbias.core.stage_context import stage_context
from recbias.models.training.fine_tuning_loop import FineTuningLoop
from recbias.models.training.fine_tuning_plan import FineTuning, Task
from recbias.models.training.several_devices.ranks import Ranks

WORK, WEIGHTS, MEETING = "work.pt", "weights.pt", "meeting"
"""Files of the folder that the processes share."""

ASKED = frozenset({"validation", "checkpoint"})
"""The messages that wait for an answer."""

LOOPBACK = {"linux": "lo", "darwin": "lo0"}
"""The network interface by which processes of one machine find each other."""


@dataclass(frozen=True, eq=False)
class Work:
    """A fine-tuning, with what each process needs to know of the stage."""

    task: Task
    plan: FineTuning
    rng: np.random.Generator
    checkpoint: Mapping[str, AnyArray] | None
    validates: bool  # Whether the validation scores are used outside the model


@dataclass(frozen=True)
class _Reports:
    """Sends what a stage would hear of a training to the process that runs the stage."""

    connection: Connection
    checkpoint: Mapping[str, AnyArray] | None
    is_first: bool  # Whether this process speaks for all

    def tell(self, kind: str, *values: Any) -> None:
        """Send a message; wait for the answer if it has one."""
        self.connection.send((kind, *values))
        if kind in ASKED:
            self.connection.recv()

    def load(self) -> Mapping[str, AnyArray] | None:
        """Return the last checkpoint of the stage."""
        return self.checkpoint

    def save(self, arrays: Mapping[str, AnyArray]) -> None:
        """Let the stage store a checkpoint."""
        if self.is_first:
            self.tell("checkpoint", arrays)

    def progressed(self, *report: Any) -> None:
        """Report progress."""
        if self.is_first:
            self.tell("progress", *report)

    def validated(self, epoch: int, score: float) -> None:
        """Report a validation score."""
        if self.is_first:
            self.tell("validation", epoch, score)


def run_rank(
    rank: int,
    folder: Path,
    devices: Sequence[str],
    connections: Sequence[Connection],
    files: Sequence[tuple[Path, bytes]],
) -> None:
    """Train on the device of a process; the first one writes the weights into the folder."""
    import torch

    follow_parent()
    connection = connections[rank]
    try:
        import_files(files)
        work: Work = torch.load(folder / WORK, weights_only=False)
        ranks = Ranks(rank, len(devices), work.plan.strategy)
        with _join_group(folder / MEETING, ranks, devices[rank]):
            _train(
                work,
                ranks,
                devices[rank],
                _Reports(connection, work.checkpoint, rank == 0),
                folder,
            )
    except UserError as error:
        connection.send(("error", error))
        raise SystemExit(1) from None


def _train(work: Work, ranks: Ranks, device: str, reports: _Reports, folder: Path) -> None:
    import torch

    task = work.task
    task.module.to(device)
    facts: dict[str, Any] = {}
    warnings: list[str] = []
    with stage_context(
        warnings=warnings,
        facts=facts,
        on_progress=reports.progressed,
        on_validation=reports.validated if work.validates else None,
        checkpoint_store=reports,
    ):
        curve = FineTuningLoop(task, work.plan, work.rng, ranks).run()
    weights = {name: _gather(tensor) for name, tensor in task.module.state_dict().items()}
    if ranks.rank == 0:
        torch.save(weights, folder / WEIGHTS)
        for name, fact in facts.items():
            reports.tell("fact", name, fact)
        for warning in warnings:
            reports.tell("warning", warning)
        reports.tell("result", curve, work.rng.bit_generator.state)


def _gather(tensor: Any) -> Any:
    """Return a tensor on the CPU, gathered from the processes that share it."""
    whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole.detach().cpu()


@contextmanager
def _join_group(meeting: Path, ranks: Ranks, device: str) -> Iterator[None]:
    """Connect this process with the others, by NCCL on CUDA and Gloo on the CPU."""
    import torch

    if sys.platform in LOOPBACK:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK[sys.platform])
    if is_cuda(device):
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, torch.get_num_threads() // ranks.size))
    torch.distributed.init_process_group(
        "nccl" if is_cuda(device) else "gloo",
        store=torch.distributed.FileStore(str(meeting), ranks.size),  # type: ignore[attr-defined]
        rank=ranks.rank,
        world_size=ranks.size,
    )
    yield
    torch.distributed.destroy_process_group()  # after an error it might wait for the others
