"""The loop of a fine-tuning, in one process or in each of several."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.stage_context import Checkpoints, record_fact, report_progress
from recbias.models.ranking.tensors import is_out_of_memory
from recbias.models.training.batches import (
    bucket_by_length,
    can_split,
    report_out_of_memory,
    warn_about_split,
)
from recbias.models.training.captured.passes import capture_passes
from recbias.models.training.fine_tuning_plan import (
    FineTuning,
    HasBody,
    HasLossParts,
    LearningCurve,
    PreparesStep,
    StepLoss,
    Task,
)
from recbias.models.training.optimizer import Optimizer
from recbias.models.training.progress import EarlyStopping, TrainingState
from recbias.models.training.schedule import create_divergence_error
from recbias.models.training.several_devices.ranks import Ranks, Share

TOLERATED_GROWTH = 1.5
"""The growth of a part of the loss since the first step that is no divergence."""

SEEDS_PER_RANK = 2**40
"""The distance between the seeds of two processes, more than the steps of an epoch."""


@dataclass
class FineTuningLoop:
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

    def run(self) -> LearningCurve:
        """Run the remaining epochs; return the parts of the loss of each step."""
        import torch

        with torch.random.fork_rng(), report_out_of_memory(self.plan), self._capture_passes():
            self._run_epochs()
        values = np.array(self.state.losses, dtype=np.float64).reshape(-1, len(self.names))
        return LearningCurve(self.names, values, self.steps_per_epoch)

    def _capture_passes(self) -> AbstractContextManager[None]:
        if self.ranks.size > 1 or not isinstance(self.task, HasBody) or self.task.body is None:
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
            rank_seed = seed + step + SEEDS_PER_RANK * self.ranks.rank
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

        if isinstance(self.task, PreparesStep):
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

    def _add_gradients(self, shares: Sequence[Share], n_texts: int) -> StepLoss:
        total: list[Any] = []
        parts: dict[str, list[Any]] = {name: [] for name in self.names}
        for index, (part, weight) in enumerate(shares):
            is_last = index == len(shares) - 1
            with nullcontext() if is_last else self.replica.accumulate():
                # gradients are averaged over the processes, of which each has a share of the sum
                loss = self.replica.loss(part) * (weight * self.ranks.size) / n_texts
                loss.backward()
            total.append(loss.detach() / self.ranks.size)
            if isinstance(self.task, HasLossParts):
                for name, value in self.task.read_parts().items():
                    parts[name].append(weight * value / n_texts)
        return StepLoss(total, parts if isinstance(self.task, HasLossParts) else {"loss": total})

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
        if not isinstance(self.task, HasLossParts):
            return False
        first = dict(zip(self.names, self.state.losses, strict=False))
        return any(
            parts[name] > max(limit, TOLERATED_GROWTH * first[name])
            for name, limit in self.task.limits.items()
        )
