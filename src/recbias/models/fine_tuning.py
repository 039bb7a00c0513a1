"""Fine-tuning of models with a pretrained language model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recbias.core.context import Checkpoints, record_fact, report_progress
from recbias.core.dataset import AnyArray, FloatArray
from recbias.kernels.devices import Precision
from recbias.models.captured import capture_passes
from recbias.models.gpu import Tensor, report_full_device
from recbias.models.training import (
    EarlyStopping,
    Optimizer,
    TrainingState,
    create_divergence_error,
)


class Task:
    """A module to be fine-tuned, with its training texts."""

    @property
    def module(self) -> Any:
        """The ``torch`` module."""
        raise NotImplementedError

    @property
    def lengths(self) -> AnyArray:
        """The number of tokens of each training text, ``int64[n]``."""
        raise NotImplementedError

    def loss(self, rows: AnyArray) -> Tensor:
        """Return the sum of the losses of a batch of training texts, by position."""
        raise NotImplementedError

    @property
    def has_validation_texts(self) -> bool:
        """Whether there are validation texts."""
        return False

    def validation_score(self) -> float:
        """Return the score on the validation texts; higher is better."""
        return math.nan

    @property
    def body(self) -> Any:
        """A part whose passes depend on its inputs alone, and are most of the work; or None."""
        return None

    def prepare_step(self, rows: AnyArray) -> None:
        """Receive the texts of the next step, of which a batch is a part."""

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of the losses that ``loss`` combines, which make a learning curve."""
        return ()

    @property
    def limits(self) -> Mapping[str, float]:
        """The value of a part above which training has diverged, by its name."""
        return {}

    def read_parts(self) -> Mapping[str, Tensor | float]:
        """Return the parts of the last loss by name, each the sum over the texts of the batch."""
        return {}


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """The losses of each step of a training.

    Args:
        names: The parts of the loss.
        values: The mean of each part over the texts of a step, ``float64[steps, parts]``.
        steps_per_epoch: The number of steps of an epoch.
    """

    names: tuple[str, ...]
    values: FloatArray
    steps_per_epoch: int


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """The optimization: AdamW with linear warm-up and linear decay of the learning rate to 0."""

    name: str  # The name of the model in progress and messages
    epochs: int  # Maximum number of epochs
    batch_size: int  # Number of texts per step
    learning_rate: float  # Maximum learning rate
    warmup: float = 0.1  # Share of the steps in which the learning rate rises
    weight_decay: float = 0.01  # Decoupled weight decay of matrices; biases and norms have none
    # Factor of the learning rate of the module's ``head``, which is not pretrained
    head_rate: float = 1.0
    max_norm: float = 1.0  # Maximum norm of the gradient; larger gradients are clipped
    # Number of epochs without improvement before training stops and the best epoch is restored;
    # 0 disables early stopping
    patience: int = 0
    # Number of parts of a batch that are computed one after another and whose gradients are
    # summed, to save memory
    batch_parts: int = 1
    # The setting to lower if training diverges, with its value; None for the learning rate
    risk: tuple[str, float] | None = None
    memory_setting: str = "batch_parts"  # The setting that saves memory
    precision: Precision = "float32"  # The type of matrix products

    def scale_rate(self, step: int, n_steps: int) -> float:
        """Return the learning rate of a step, counted from 0, as a share of the maximum.

        >>> plan = FineTuning(name="", epochs=1, batch_size=1, learning_rate=1.0, warmup=0.5)
        >>> [plan.scale_rate(step, 4) for step in range(4)]
        [0.5, 1.0, 1.0, 0.5]
        """
        n_warmup = math.ceil(self.warmup * n_steps)
        if step < n_warmup:
            return (step + 1) / n_warmup
        return (n_steps - step) / max(n_steps - n_warmup, 1)


_POOL = 64
"""Number of batches whose texts are sorted by length together: large enough for little padding,
small enough that batches differ between epochs."""


def bucket_by_length(
    lengths: AnyArray, batch_size: int, rng: np.random.Generator
) -> Sequence[AnyArray]:
    """Return batches of texts of similar length in random order; each text is in one batch.

    >>> batches = bucket_by_length(np.array([1, 9, 1, 9]), 2, np.random.default_rng(0))
    >>> sorted(sorted(batch.tolist()) for batch in batches)
    [[0, 2], [1, 3]]
    """
    order = rng.permutation(lengths.size)
    batches = []
    for pool_start in range(0, order.size, _POOL * batch_size):
        pool = order[pool_start : pool_start + _POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[start : start + batch_size] for start in range(0, pool.size, batch_size)]
    return [batches[position] for position in rng.permutation(len(batches))]


def report_out_of_memory(plan: FineTuning) -> AbstractContextManager[None]:
    """Raise TooLittleMemory, with a remedy, if memory runs out in the block."""
    remedy = f"lower {plan.memory_setting} or max_length"
    if plan.memory_setting == "batch_parts":
        remedy = f"set batch_parts: {2 * plan.batch_parts}, or lower max_length"
    return report_full_device(plan.name, plan.memory_setting, remedy)


_TOLERATED_GROWTH = 1.5
"""The growth of a part of the loss since the first step that is no divergence."""


_StepLoss: TypeAlias = tuple[int, int, Mapping[str, Sequence[Any]]]
"""An epoch, a step, and the terms of the loss and of its parts, each the mean over the texts.

Terms may be tensors: to read one is to wait for the device.
"""


@dataclass
class _FineTuningLoop:
    """A fine-tuning: its task, its settings, and the generator of its random numbers."""

    task: Task
    plan: FineTuning
    rng: np.random.Generator

    def __post_init__(self) -> None:
        import torch

        groups = self._group_parameters()
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        self.device = self.parameters[0].device
        self.optimizer = torch.optim.AdamW(
            groups, lr=self.plan.learning_rate, fused=self.device.type in {"cpu", "cuda"}
        )
        self.stopping = EarlyStopping(self.task.has_validation_texts, self.plan.patience)
        self.state = TrainingState(
            self.parameters, (), Optimizer(self.optimizer), self.stopping, self.rng
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
        if self.task.body is None:
            return nullcontext()
        return capture_passes(self.task.body, self.plan.name)

    def _run_epochs(self) -> None:
        checkpoints = Checkpoints.current()
        n_epochs, step = self.state.resume(checkpoints.load())
        for epoch in range(n_epochs, self.plan.epochs):
            if self.stopping.should_stop:
                break
            self._run_epoch(epoch, step, checkpoints)
            step = 0
            if self.stopping.is_active:
                self.stopping.record(self.task.validation_score(), self.parameters)
            checkpoints.save_if_due(lambda epoch=epoch: self.state.arrays(epoch + 1))  # type: ignore[misc]
        self.stopping.restore(self.parameters)
        self.task.module.eval()

    def _run_epoch(self, epoch: int, first_step: int, checkpoints: Checkpoints) -> None:
        import torch

        rng_state = self.rng.bit_generator.state
        batches = bucket_by_length(self.task.lengths, self.plan.batch_size, self.rng)
        seed = int(self.rng.integers(2**62))
        n_steps = self.plan.epochs * self.steps_per_epoch
        self.task.module.train()
        n_tokens, start_time = 0, time.perf_counter()
        unread: _StepLoss | None = None  # is read after the next step is under way on the device
        for step in range(first_step, len(batches)):
            n_completed = epoch * self.steps_per_epoch + step
            rate = self.plan.scale_rate(n_completed, n_steps) * self.plan.learning_rate
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            sums = self._sum_gradients(batches[step], seed + step)
            torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.max_norm)
            self.optimizer.step()
            is_due = checkpoints.is_due
            self._read(unread)
            unread = (epoch + 1, step + 1, sums)
            n_tokens += int(self.task.lengths[batches[step]].sum())
            report_progress(f"{self.plan.name} steps", n_completed + 1, n_steps)
            if is_due:
                self._read(unread)
                unread = None
                checkpoints.save(lambda step=step: self.state.arrays(epoch, step + 1, rng_state))  # type: ignore[misc]
        self._read(unread)
        seconds = time.perf_counter() - start_time + 1e-9
        record_fact("tokens_per_second", round(n_tokens / seconds))

    def _read(self, loss: _StepLoss | None) -> None:
        """Record the loss of a step, for which the device has to be done with it.

        Raises:
            OutOfRange: The loss has diverged.
        """
        if loss is None:
            return
        epoch, step, sums = loss
        parts = {name: sum(map(float, terms)) for name, terms in sums.items()}
        value = parts["loss"]
        self.state.losses.extend(parts[name] for name in self.names)
        if math.isfinite(value) and not self._is_above_limit(parts):
            return
        setting = self.plan.risk or ("learning_rate", self.plan.learning_rate)
        where = f"step {step} of {self.steps_per_epoch}"
        others = {name: value for name, value in parts.items() if name != "loss"}
        raise create_divergence_error(self.plan, epoch, value, setting, where=where, parts=others)

    def _sum_gradients(self, rows: AnyArray, seed: int) -> Mapping[str, Sequence[Any]]:
        """Return the terms of the losses of a batch after its gradients, those of its parts."""
        import torch

        self.task.prepare_step(rows)
        torch.manual_seed(seed)
        self.optimizer.zero_grad(set_to_none=True)
        sums: dict[str, list[Any]] = {name: [] for name in ("loss", *self.task.part_names)}
        for part in np.array_split(rows, min(self.plan.batch_parts, rows.size)):
            loss = self.task.loss(part) / rows.size
            loss.backward()
            sums["loss"].append(loss.detach())
            for name, value in self.task.read_parts().items():
                sums[name].append(value / rows.size)
        return sums

    def _is_above_limit(self, parts: Mapping[str, float]) -> bool:
        """Return whether a part is above its limit and has grown since the first step."""
        first = dict(zip(self.names, self.state.losses, strict=False))
        return any(
            parts[name] > max(limit, _TOLERATED_GROWTH * first[name])
            for name, limit in self.task.limits.items()
        )


def fine_tune(task: Task, plan: FineTuning, rng: np.random.Generator) -> LearningCurve:
    """Fine-tune a module in place, with early stopping if there are validation texts.

    The same generator gives the same weights on the same kind of device, also if training is
    interrupted within an epoch and resumed from a checkpoint: random numbers depend on the epoch
    and the step only. On CUDA, sums of gradients and passes that are captured as graphs make these
    weights equal up to rounding. The global random state of torch does not change.

    Returns:
        The parts of the loss of each step; ``loss`` alone if the task does not name parts.

    Raises:
        OutOfRange: The loss is not finite, or a part is above its limit and above 1.5 times its
            value in the first step.
        TooLittleMemory: The device has too little memory for a part of a batch.
    """
    return _FineTuningLoop(task, plan, rng).run()
