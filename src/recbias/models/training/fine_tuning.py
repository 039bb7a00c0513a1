"""The fine-tuning loop of models with a pretrained language model."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import TooLittleMemory
from recbias.core.stage_context import Checkpoints, record_fact, report_progress
from recbias.models.ranking.tensors import is_out_of_memory
from recbias.models.training.fine_tuning_plan import (
    FineTuning,
    HasLossParts,
    LearningCurve,
    PreparesStep,
    Task,
)
from recbias.models.training.optimizer import Optimizer
from recbias.models.training.progress import EarlyStopping, TrainingState
from recbias.models.training.schedule import create_divergence_error

POOL = 64
"""Number of batches whose texts are sorted by length together: large enough for little padding,
small enough that batches differ between epochs."""

TOLERATED_GROWTH = 1.5
"""The growth of a part of the loss since the first step that is no divergence."""


def fine_tune(task: Task, plan: FineTuning, rng: np.random.Generator) -> LearningCurve:
    """Fine-tune a module in place, with early stopping if there are validation texts.

    The same generator gives the same weights on the same kind of device, also if training is
    interrupted within an epoch and resumed from a checkpoint: random numbers depend on the epoch
    and the step only. The global random state of torch does not change.

    Returns:
        The parts of the loss of each step; ``loss`` alone if the task does not name parts.

    Raises:
        OutOfRange: The loss is not finite, or a part is above its limit and above 1.5 times its
            value in the first step.
        TooLittleMemory: The device has too little memory for a batch.
    """
    import torch

    loop = _Loop(task, plan, rng)
    with torch.random.fork_rng(), _report_out_of_memory(plan):
        loop.run()
    values = np.array(loop.state.losses, dtype=np.float64).reshape(-1, len(loop.names))
    return LearningCurve(loop.names, values, loop.steps_per_epoch)


@dataclass
class _Loop:
    task: Task
    plan: FineTuning
    rng: np.random.Generator

    def __post_init__(self) -> None:
        import torch

        groups = self._group_parameters()
        self.parameters = [parameter for group in groups for parameter in group["params"]]
        device = self.parameters[0].device
        self.optimizer = torch.optim.AdamW(
            groups, lr=self.plan.learning_rate, fused=device.type in {"cpu", "cuda"}
        )
        self.stopping = EarlyStopping(self.task.has_validation_texts, self.plan.patience)
        self.state = TrainingState(
            self.parameters, (), Optimizer(self.optimizer), self.stopping, self.rng
        )
        self.names: tuple[str, ...] = ("loss",)
        if isinstance(self.task, HasLossParts):
            self.names = self.task.part_names
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

    def run(self) -> None:
        """Run the remaining epochs."""
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
        for step in range(first_step, len(batches)):
            torch.manual_seed(seed + step)
            n_completed = epoch * self.steps_per_epoch + step
            rate = self.plan.scale_rate(n_completed, n_steps) * self.plan.learning_rate
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            loss, parts = self._run_step(batches[step])
            self.state.losses.extend(parts[name] for name in self.names)
            if not math.isfinite(loss) or self._is_above_limit(parts):
                setting = self.plan.risk or ("learning_rate", self.plan.learning_rate)
                where = f"step {step + 1} of {len(batches)}"
                others = {name: value for name, value in parts.items() if name != "loss"}
                raise create_divergence_error(
                    self.plan, epoch + 1, loss, setting, where=where, parts=others
                )
            n_tokens += int(self.task.lengths[batches[step]].sum())
            report_progress(f"{self.plan.name} steps", n_completed + 1, n_steps)
            checkpoints.save_if_due(
                lambda step=step: self.state.arrays(epoch, step + 1, rng_state)  # type: ignore[misc]
            )
        seconds = time.perf_counter() - start_time + 1e-9
        record_fact("tokens_per_second", round(n_tokens / seconds))

    def _run_step(self, rows: AnyArray) -> tuple[float, Mapping[str, float]]:
        """Return the loss of a step, the mean over its texts, and that of each part."""
        import torch

        self.optimizer.zero_grad(set_to_none=True)
        if isinstance(self.task, PreparesStep):
            self.task.prepare_step(rows)
        batch_loss, parts = 0.0, dict[str, float]()
        for part in np.array_split(rows, min(self.plan.batch_parts, rows.size)):
            loss = self.task.loss(part) / rows.size
            loss.backward()
            batch_loss += float(loss.detach())
            if isinstance(self.task, HasLossParts):
                for name, value in self.task.read_parts().items():
                    parts[name] = parts.get(name, 0.0) + value / rows.size
        torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.max_norm)
        self.optimizer.step()
        return batch_loss, parts or {"loss": batch_loss}

    def _is_above_limit(self, parts: Mapping[str, float]) -> bool:
        """Return whether a part is above its limit and has grown since the first step."""
        if not isinstance(self.task, HasLossParts):
            return False
        first = dict(zip(self.names, self.state.losses, strict=False))
        return any(
            parts[name] > max(limit, TOLERATED_GROWTH * first[name])
            for name, limit in self.task.limits.items()
        )


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
    for pool_start in range(0, order.size, POOL * batch_size):
        pool = order[pool_start : pool_start + POOL * batch_size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[start : start + batch_size] for start in range(0, pool.size, batch_size)]
    return [batches[position] for position in rng.permutation(len(batches))]


@contextmanager
def _report_out_of_memory(plan: FineTuning) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        problem = f"{plan.name}: the device has too little memory for a batch"
        remedy = f"raise batch_parts, which is {plan.batch_parts}, or lower max_length"
        if plan.memory_setting != "batch_parts":
            remedy = f"lower {plan.memory_setting} or max_length"
        raise TooLittleMemory(problem, where=plan.memory_setting, remedy=remedy) from error
