"""The processes that train one model together: data parallelism by DDP or FSDP of torch.

The loop of a fine-tuning, in one process or in each of several.
What one of several processes does that fine-tune a model together.
A fine-tuning in several processes of this machine, one for each device.
Fine-tuning of models with a pretrained language model.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from recbias.core.context import (
    Checkpoints,
    has_validation_listener,
    record_fact,
    report_progress,
    report_validation,
    stage_context,
    warn,
)
from recbias.core.dataset import AnyArray
from recbias.core.errors import DeadProcess, TooLittleMemory, UserError
from recbias.core.machine import follow_parent, hold_signals
from recbias.core.plugins import is_cuda
from recbias.core.registry import import_files, list_imported_files
from recbias.kernels.devices import find_devices
from recbias.models.captured import capture_passes
from recbias.models.gpu import Tensor, is_out_of_memory
from recbias.models.training import (
    EarlyStopping,
    FineTuning,
    LearningCurve,
    Optimizer,
    StepLoss,
    Strategy,
    Task,
    TrainingState,
    bucket_by_length,
    can_split,
    create_divergence_error,
    report_out_of_memory,
    warn_about_split,
)

_Share: TypeAlias = tuple[AnyArray, int]
"""Texts that a process computes at once, and their weight: 0 if they only fill a gap."""


@dataclass(frozen=True)
class _Replica:
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

    def share(self, rows: AnyArray, n_parts: int) -> Sequence[_Share]:
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

    def replicate(self, task: Task) -> _Replica:
        """Return what this process calls of a task; its parameters are sharded by ``fsdp``."""
        if self.size == 1:
            return _Replica(task.loss, task.validation_score)
        network = _make_network(task)
        if self.strategy == "fsdp":
            _shard(network, self.size)
            return _Replica(network, lambda: network(None))
        from torch.nn.parallel import DistributedDataParallel

        # an encoder may have a pooler, of which no loss depends
        replica: Any = DistributedDataParallel(network, find_unused_parameters=True)
        return _Replica(replica, task.validation_score, replica.no_sync)


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


_TOLERATED_GROWTH = 1.5
"""The growth of a part of the loss since the first step that is no divergence."""

_SEEDS_PER_RANK = 2**40
"""The distance between the seeds of two processes, more than the steps of an epoch."""


@dataclass
class _FineTuningLoop:
    """A fine-tuning in this process, with others if there are several."""

    task: Task
    plan: FineTuning
    rng: np.random.Generator
    ranks: Ranks = field(default_factory=Ranks)

    def __post_init__(self) -> None:
        import torch

        self.replica = self.ranks.replicate(self.task)
        groups = self._group_parameters()
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.device = self.parameters[0].device
        self.optimizer = torch.optim.AdamW(
            groups, lr=self.plan.learning_rate, fused=self.device.type in {"cpu", "cuda"}
        )
        self.stopping = EarlyStopping(self.task.has_validation_texts, self.plan.patience)
        self.n_parts = torch.tensor(self.plan.batch_parts)  # doubled when the device is full
        self.state = TrainingState(
            self.parameters, (self.n_parts,), Optimizer(self.optimizer), self.stopping, self.rng
        )
        self.names = self.task.part_names or ("loss",)
        self.steps_per_epoch = math.ceil(self.task.lengths.size / self.plan.batch_size)

    def _group_parameters(self) -> list[dict[str, Any]]:
        groups: dict[tuple[bool, bool], list[Any]] = {}
        for name, parameter in self.task.module.named_parameters():
            if parameter.requires_grad:
                key = (parameter.ndim > 1, name.startswith("head."))
                groups.setdefault(key, []).append(parameter)
        return [
            {
                "params": parameters,
                "weight_decay": self.plan.weight_decay if is_matrix else 0.0,
                "factor": self.plan.head_rate if is_head else 1.0,
            }
            for (is_matrix, is_head), parameters in groups.items()
        ]

    def run(self) -> LearningCurve:
        """Run the remaining epochs; return the parts of the loss of each step."""
        import torch

        with torch.random.fork_rng(), report_out_of_memory(self.plan), self._capture_passes():
            self._run_epochs()
        values = np.array(self.state.losses, dtype=np.float64).reshape(-1, len(self.names))
        return LearningCurve(self.names, values, self.steps_per_epoch)

    def _capture_passes(self) -> AbstractContextManager[None]:
        if self.ranks.size > 1 or self.task.body is None:
            return nullcontext()
        return capture_passes(self.task.body, self.plan.name)

    def _run_epochs(self) -> None:
        checkpoints = Checkpoints.current()
        n_epochs, step = self.state.resume(checkpoints.load())
        self.n_parts.clamp_(min=self.plan.batch_parts)
        for epoch in range(n_epochs, self.plan.epochs):
            if self.stopping.should_stop:
                break
            self._run_epoch(epoch, step, checkpoints)
            step = 0
            if self.stopping.is_active:
                self.stopping.record(self._validate(), self.parameters)
            (is_due,) = self._share_first([checkpoints.is_due])
            self._save(checkpoints, is_due, lambda epoch=epoch: self.state.arrays(epoch + 1))  # type: ignore[misc]
        self.stopping.restore(self.parameters)
        self.task.module.eval()

    def _run_epoch(self, epoch: int, first_step: int, checkpoints: Checkpoints) -> None:
        rng_state = self.rng.bit_generator.state
        batches = bucket_by_length(self.task.lengths, self.plan.batch_size, self.rng)
        seed = int(self.rng.integers(2**62))
        n_steps = self.plan.epochs * self.steps_per_epoch
        self.task.module.train()
        n_tokens, start_time = 0, time.perf_counter()
        unread: StepLoss | None = None  # is read after the next step is under way on the device
        for step in range(first_step, len(batches)):
            n_completed = epoch * self.steps_per_epoch + step
            rate = self.plan.scale_rate(n_completed, n_steps) * self.plan.learning_rate
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            rank_seed = seed + step + _SEEDS_PER_RANK * self.ranks.rank
            is_due, loss = self._run_step(batches[step], rank_seed, checkpoints)
            self._read(unread)
            unread = replace(loss, epoch=epoch + 1, step=step + 1)
            n_tokens += int(self.task.lengths[batches[step]].sum())
            report_progress(f"{self.plan.name} steps", n_completed + 1, n_steps)
            if is_due:
                self._read(unread)
                unread = None
            self._save(
                checkpoints,
                is_due,
                lambda step=step: self.state.arrays(epoch, step + 1, rng_state),  # type: ignore[misc]
            )
        self._read(unread)
        seconds = time.perf_counter() - start_time + 1e-9
        record_fact("tokens_per_second", round(n_tokens / seconds))

    def _read(self, loss: StepLoss | None) -> None:
        """Record the loss of a step, for which the device has to be done with it.

        Raises:
            OutOfRange: The loss has diverged.
        """
        if loss is None:
            return
        value, parts = loss.read()
        self.state.losses.extend(parts[name] for name in self.names)
        if math.isfinite(value) and not self._is_above_limit(parts):
            return
        setting = self.plan.risk or ("learning_rate", self.plan.learning_rate)
        where = f"step {loss.step} of {self.steps_per_epoch}"
        others = {name: value for name, value in parts.items() if name != "loss"}
        raise create_divergence_error(
            self.plan, loss.epoch, value, setting, where=where, parts=others
        )

    def _run_step(
        self, rows: AnyArray, seed: int, checkpoints: Checkpoints
    ) -> tuple[float, StepLoss]:
        """Return whether a checkpoint is due, which the first process decides, and the loss."""
        import torch

        loss = self._sum_gradients(rows, seed)
        torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.max_norm)
        self.optimizer.step()
        is_due = float(checkpoints.is_due and self.ranks.rank == 0)
        if self.ranks.size == 1:
            return is_due, loss
        value, parts = loss.read()
        is_due, value, *values = self.ranks.add([is_due, value, *parts.values()], self.device)
        terms = [[part] for part in values]
        return is_due, StepLoss([value], dict(zip(parts, terms, strict=True)))

    def _sum_gradients(self, rows: AnyArray, seed: int) -> StepLoss:
        """Return the loss of a batch after its gradients; it is split if memory runs out."""
        import torch

        self.task.prepare_step(rows)
        while True:
            torch.manual_seed(seed)
            self.optimizer.zero_grad(set_to_none=True)
            try:
                return self._add_gradients(self.ranks.share(rows, int(self.n_parts)), rows.size)
            except (RuntimeError, MemoryError) as error:
                is_splittable = can_split(self.plan, int(self.n_parts), rows.size)
                if self.ranks.size > 1 or not (is_splittable and is_out_of_memory(error)):
                    raise
            self.n_parts *= 2
            warn_about_split(self.plan.name, int(self.n_parts))
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _add_gradients(self, shares: Sequence[_Share], n_texts: int) -> StepLoss:
        total: list[Any] = []
        parts: dict[str, list[Any]] = {name: [] for name in self.names}
        for index, (part, weight) in enumerate(shares):
            is_last = index == len(shares) - 1
            with nullcontext() if is_last else self.replica.accumulate():
                # gradients are averaged over the processes, of which each has a share of the sum
                loss = self.replica.loss(part) * (weight * self.ranks.size) / n_texts
                loss.backward()
            total.append(loss.detach() / self.ranks.size)
            for name, value in self.task.read_parts().items():
                parts[name].append(weight * value / n_texts)
        return StepLoss(total, parts if self.task.part_names else {"loss": total})

    def _validate(self) -> float:
        """Return the validation score, the same in all processes."""
        (score,) = self._share_first([self.replica.validate()])
        return score

    def _share_first(self, values: Sequence[float]) -> list[float]:
        """Return the values of the first process."""
        terms = [float(value) if self.ranks.rank == 0 else 0.0 for value in values]
        return self.ranks.add(terms, self.device)

    def _save(
        self,
        checkpoints: Checkpoints,
        is_due: float,
        make_checkpoint: Callable[[], Mapping[str, AnyArray]],
    ) -> None:
        if is_due and self.ranks.holds_state:
            checkpoints.save(make_checkpoint)

    def _is_above_limit(self, parts: Mapping[str, float]) -> bool:
        """Return whether a part is above its limit and has grown since the first step."""
        first = dict(zip(self.names, self.state.losses, strict=False))
        return any(
            parts[name] > max(limit, _TOLERATED_GROWTH * first[name])
            for name, limit in self.task.limits.items()
        )


_WORK, _WEIGHTS, _MEETING = "work.pt", "weights.pt", "meeting"
"""Files of the folder that the processes share."""

_ASKED = frozenset({"validation", "checkpoint"})
"""The messages that wait for an answer."""

_LOOPBACK = {"linux": "lo", "darwin": "lo0"}
"""The network interface by which processes of one machine find each other."""


@dataclass(frozen=True, eq=False)
class _Work:
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
        if kind in _ASKED:
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


def _run_rank(
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
        work: _Work = torch.load(folder / _WORK, weights_only=False)
        ranks = Ranks(rank, len(devices), work.plan.strategy)
        with _join_group(folder / _MEETING, ranks, devices[rank]):
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


def _train(work: _Work, ranks: Ranks, device: str, reports: _Reports, folder: Path) -> None:
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
        curve = _FineTuningLoop(task, work.plan, work.rng, ranks).run()
    weights = {name: _gather(tensor) for name, tensor in task.module.state_dict().items()}
    if ranks.rank == 0:
        torch.save(weights, folder / _WEIGHTS)
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

    if sys.platform in _LOOPBACK:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _LOOPBACK[sys.platform])
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


_GRACE_SECONDS = 3.0
"""How long the other processes may take to say why one of them failed."""


def _train_in_processes(
    task: Task,
    plan: FineTuning,
    rng: np.random.Generator,
    checkpoint: Mapping[str, AnyArray] | None,
) -> LearningCurve:
    """Fine-tune a module in place, as ``fine_tune``, with a process for each device.

    The processes report to this one, which writes the checkpoints and knows the listeners of the
    stage. If one fails, or this one is interrupted, all end.
    """
    import torch

    device = next(task.module.parameters()).device
    task.module.to("cpu")
    work = _Work(task, plan, rng, checkpoint, has_validation_listener())
    with tempfile.TemporaryDirectory(prefix="recbias-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        torch.save(work, folder / _WORK)
        curve, state = _RankProcesses(plan.name).run(
            folder, find_devices(device.type, plan.devices)
        )
        weights = torch.load(folder / _WEIGHTS, weights_only=True, map_location="cpu")
        task.module.load_state_dict(weights)
    rng.bit_generator.state = state
    task.module.to(device).eval()
    return curve


@dataclass(eq=False)
class _RankProcesses:
    name: str  # The model, in messages
    processes: list[Any] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)
    context: Any = None  # That of torch
    result: tuple[LearningCurve, Any] | None = None

    def run(self, folder: Path, devices: tuple[str, ...]) -> tuple[LearningCurve, Any]:
        """Return the result of the first process; each has a device."""
        from torch.multiprocessing.spawn import start_processes

        pipes = [Pipe() for _ in devices]
        self.connections = [parent for parent, _ in pipes]
        arguments = (folder, devices, [child for _, child in pipes], list_imported_files())
        with hold_signals():
            self.context = start_processes(  # type: ignore[no-untyped-call]
                _run_rank, arguments, nprocs=len(devices), join=False, start_method="spawn"
            )
        self.processes = self.context.processes
        try:
            while any(process.exitcode is None for process in self.processes):
                self._receive(None)
                if self._has_failed:
                    self._raise_failure(devices)
            self._receive(0)
        finally:
            for process in self.processes:
                process.kill()
            for process in self.processes:
                process.join()
        if self.result is None:
            raise DeadProcess(f"the processes of {self.name} ended without a result")
        return self.result

    @property
    def _has_failed(self) -> bool:
        return bool(self.errors) or any(process.exitcode for process in self.processes)

    def _receive(self, timeout: float | None) -> None:
        """Wait for messages or ends of processes, and do what the messages say.

        Nothing more comes once all have ended, which may be after the caller has looked.
        """
        running = [process.sentinel for process in self.processes if process.exitcode is None]
        for ready in wait([*self.connections, *running], timeout if running else 0):
            if isinstance(ready, Connection):
                with suppress(EOFError, ConnectionResetError):
                    self._handle(ready, *ready.recv())

    def _handle(self, connection: Connection, kind: str, *values: Any) -> None:
        handlers: Mapping[str, Any] = {
            "progress": report_progress,
            "validation": report_validation,
            "checkpoint": _save,
            "fact": record_fact,
            "warning": warn,
            "error": self.errors.append,
            "result": self._keep_result,
        }
        handlers[kind](*values)
        if kind in _ASKED:
            connection.send(None)

    def _keep_result(self, curve: LearningCurve, state: Any) -> None:
        self.result = curve, state

    def _raise_failure(self, devices: tuple[str, ...]) -> None:
        """Raise the cause of a failure: what a process says is its fault, or which one died.

        The others fail because they lost the one that did, at times before it is known to have.
        """
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline and not self.errors:
            codes = [process.exitcode for process in self.processes]
            if None not in codes or any((code or 0) < 0 for code in codes):
                break
            self._receive(max(0.0, deadline - time.monotonic()))
        if self.errors:
            raise self.errors[0]
        for rank, process in enumerate(self.processes):
            if (process.exitcode or 0) < 0:
                message = f"process {rank + 1} of {len(devices)} of {self.name}, on "
                message += f"{devices[rank]}, died (signal {-process.exitcode})"
                raise DeadProcess(message)
        self.context.join()  # raises the traceback of the first one


def _save(arrays: Mapping[str, AnyArray]) -> None:
    Checkpoints.current().save(lambda: arrays)


def fine_tune(task: Task, plan: FineTuning, rng: np.random.Generator) -> LearningCurve:
    """Fine-tune a module in place, with early stopping if there are validation texts.

    The same generator gives the same weights on the same kind of device, also if training is
    interrupted within an epoch and resumed from a checkpoint: random numbers depend on the epoch
    and the step only. On CUDA, sums of gradients and passes that are captured as graphs make these
    weights equal up to rounding. The global random state of torch does not change. Several devices
    give the weights of one up to rounding, and other random numbers within the module. When a
    device is full, batches are computed in twice as many parts, with a warning.

    Returns:
        The parts of the loss of each step; ``loss`` alone if the task does not name parts.

    Raises:
        OutOfRange: The loss is not finite, or a part is above its limit and above 1.5 times its
            value in the first step.
        TooLittleMemory: The device has too little memory for a text.
        DeadProcess: The process of one of several devices ended.
    """
    if plan.devices == 1:
        return _FineTuningLoop(task, plan, rng).run()
    checkpoint = Checkpoints.current().load()
    while True:
        try:
            return _train_in_processes(task, plan, rng, checkpoint)
        except TooLittleMemory:  # of one process, while others may wait for its gradients
            if not can_split(plan, plan.batch_parts, plan.batch_size // plan.devices):
                raise
        plan = replace(plan, batch_parts=2 * plan.batch_parts)
        warn_about_split(plan.name, plan.batch_parts)
