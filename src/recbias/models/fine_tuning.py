"""Fine-tuning of models with a pretrained language model."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recbias.core.context import Checkpoints, record_fact, report_progress
from recbias.core.dataset import AnyArray
from recbias.models.captured import capture_passes
from recbias.models.training import (
    EarlyStopping,
    FineTuning,
    LearningCurve,
    Optimizer,
    StepLoss,
    Task,
    TrainingState,
    bucket_by_length,
    create_divergence_error,
    report_out_of_memory,
)

_TOLERATED_GROWTH = 1.5
"""The growth of a part of the loss since the first step that is no divergence."""


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
        unread: StepLoss | None = None  # is read after the next step is under way on the device
        for step in range(first_step, len(batches)):
            n_completed = epoch * self.steps_per_epoch + step
            rate = self.plan.scale_rate(n_completed, n_steps) * self.plan.learning_rate
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            loss = self._sum_gradients(batches[step], seed + step)
            torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.max_norm)
            self.optimizer.step()
            is_due = checkpoints.is_due
            self._read(unread)
            unread = replace(loss, epoch=epoch + 1, step=step + 1)
            n_tokens += int(self.task.lengths[batches[step]].sum())
            report_progress(f"{self.plan.name} steps", n_completed + 1, n_steps)
            if is_due:
                self._read(unread)
                unread = None
                checkpoints.save(lambda step=step: self.state.arrays(epoch, step + 1, rng_state))  # type: ignore[misc]
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

    def _sum_gradients(self, rows: AnyArray, seed: int) -> StepLoss:
        """Return the loss of a batch after its gradients, which are those of its parts."""
        import torch

        self.task.prepare_step(rows)
        torch.manual_seed(seed)
        self.optimizer.zero_grad(set_to_none=True)
        total: list[Any] = []
        parts: dict[str, list[Any]] = {name: [] for name in self.names}
        for part in np.array_split(rows, min(self.plan.batch_parts, rows.size)):
            loss = self.task.loss(part) / rows.size
            loss.backward()
            total.append(loss.detach())
            for name, value in self.task.read_parts().items():
                parts[name].append(value / rows.size)
        return StepLoss(total, parts if self.task.part_names else {"loss": total})

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
