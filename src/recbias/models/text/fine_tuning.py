"""The one fine-tuning loop of the models that carry a pretrained language model."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import TooLittleMemory
from recbias.core.stage_context import Checkpoints, report_progress
from recbias.core.stage_context import record_fact as state_fact
from recbias.models.ranking.tensors import Tensor, is_out_of_memory
from recbias.models.training.divergence import create_divergence_error
from recbias.models.training.early_stopping import EarlyStopping
from recbias.models.training.state import TrainingState

POOL = 64
"""Batches whose texts are sorted by length together: enough for little padding, few enough that
the batches of an epoch differ from those of the next."""


class Task(Protocol):
    """A model that is fine-tuned, and what it learns from."""

    @property
    def module(self) -> Any:
        """The ``torch`` module."""
        ...

    @property
    def lengths(self) -> AnyArray:
        """How long each training text is, in tokens, ``int64[n]``."""
        ...

    def loss(self, rows: AnyArray) -> Tensor:
        """Return the sum of the losses of some training texts, by position."""
        ...

    @property
    def has_judges(self) -> bool:
        """Whether there are validation texts."""
        ...

    def figure(self) -> float:
        """Return how good the module is on the validation texts; more is better."""
        ...


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """How a task is learned: by AdamW, the steps growing at first and then falling to 0.

    Args:
        name: The model, in progress and messages.
        epochs: How often the texts are gone through, at most.
        batch_size: Texts in a step.
        learning_rate: The longest step.
        warmup: Share of the steps in which their length grows from 0.
        weight_decay: Share of its rate by which a weight shrinks at each step; biases and norms do
            not.
        head_rate: How many times as long as the others the steps of the module's ``head`` are:
            what starts from chance has further to go than what is pretrained.
        max_norm: Gradients longer than this are cut to it.
        patience: Epochs without a better figure before the best is taken; 0 does not look.
        accumulate: Parts that a batch is worked on in, one after another, where memory is short.
    """

    name: str
    epochs: int
    batch_size: int
    learning_rate: float
    warmup: float = 0.1
    weight_decay: float = 0.01
    head_rate: float = 1.0
    max_norm: float = 1.0
    patience: int = 0
    accumulate: int = 1

    def share_of_rate(self, step: int, n_steps: int) -> float:
        """Return the length of a step, from 0, as a share of the longest.

        >>> plan = FineTuning(name="", epochs=1, batch_size=1, learning_rate=1.0, warmup=0.5)
        >>> [plan.share_of_rate(step, 4) for step in range(4)]
        [0.5, 1.0, 1.0, 0.5]
        """
        rising = math.ceil(self.warmup * n_steps)
        if step < rising:
            return (step + 1) / rising
        return (n_steps - step) / max(n_steps - rising, 1)


def fine_tune(task: Task, plan: FineTuning, rng: np.random.Generator) -> None:
    """Fine-tune a module in place; where it is judged, its best epoch is what is left.

    The same generator gives the same weights on one kind of device, also where the work was cut
    off and goes on from a checkpoint, inside an epoch too: what is drawn in a step hangs on the
    epoch and the step alone. The random state of the process is as it was before.

    Args:
        task: What is learned.
        plan: How.
        rng: Draws the order of the texts, and the seeds of the steps.

    Raises:
        OutOfRange: The loss is no longer a finite number.
        TooLittleMemory: The device has too little for a batch.
    """
    loop = _Loop(task, plan, rng)
    with _alone(), _enough_memory(plan):
        loop.run()


@dataclass
class _Loop:
    task: Task
    plan: FineTuning
    rng: np.random.Generator

    def __post_init__(self) -> None:
        """Make the optimizer and what is kept."""
        import torch

        groups = self._groups()
        self.parameters = [each for group in groups for each in group["params"]]
        device = self.parameters[0].device
        self.optimizer = torch.optim.AdamW(
            groups, lr=self.plan.learning_rate, fused=device.type in {"cpu", "cuda"}
        )
        self.stopping = EarlyStopping(self.task.has_judges, self.plan.patience)
        self.state = TrainingState(self.parameters, (), self.optimizer, self.stopping, self.rng)
        self.steps_an_epoch = math.ceil(self.task.lengths.size / self.plan.batch_size)

    def _groups(self) -> list[dict[str, Any]]:
        """Return the weights that learn, by what they shrink by and how long their steps are."""
        groups: dict[tuple[bool, bool], list[Any]] = {}
        for name, each in self.task.module.named_parameters():
            if each.requires_grad:
                groups.setdefault((each.ndim > 1, name.startswith("head.")), []).append(each)
        return [
            {
                "params": group,
                "weight_decay": self.plan.weight_decay if shrinks else 0.0,
                "times": self.plan.head_rate if of_head else 1.0,
            }
            for (shrinks, of_head), group in groups.items()
        ]

    def run(self) -> None:
        """Go through the epochs that are left."""
        checkpoints = Checkpoints.current()
        done, step = self.state.resume(checkpoints.load())
        for epoch in range(done, self.plan.epochs):
            if self.stopping.should_stop:
                break
            self._epoch(epoch, step, checkpoints)
            step = 0
            if self.stopping.is_active:
                self.stopping.record(self.task.figure(), self.parameters)
            checkpoints.save_if_due(lambda epoch=epoch: self.state.arrays(epoch + 1))  # type: ignore[misc]
        self.stopping.restore(self.parameters)
        self.task.module.eval()

    def _epoch(self, epoch: int, first: int, checkpoints: Checkpoints) -> None:
        import torch

        drawn_from = self.rng.bit_generator.state
        batches = bucketed(self.task.lengths, self.plan.batch_size, self.rng)
        seed = int(self.rng.integers(2**62))
        total = self.plan.epochs * self.steps_an_epoch
        self.task.module.train()
        tokens, began = 0, time.perf_counter()
        for step in range(first, len(batches)):
            torch.manual_seed(seed + step)
            done = epoch * self.steps_an_epoch + step
            self._set_rate(self.plan.share_of_rate(done, total) * self.plan.learning_rate)
            loss = self._step(batches[step])
            if not math.isfinite(loss):
                raise create_divergence_error(
                    self.plan, epoch + 1, loss, "learning_rate", self.plan.learning_rate
                )
            tokens += int(self.task.lengths[batches[step]].sum())
            report_progress(f"{self.plan.name} steps", done + 1, total)
            checkpoints.save_if_due(
                lambda step=step: self.state.arrays(epoch, step + 1, drawn_from)  # type: ignore[misc]
            )
        state_fact("tokens_per_second", round(tokens / (time.perf_counter() - began + 1e-9)))

    def _step(self, rows: AnyArray) -> float:
        """Learn from a batch; return the mean loss of its texts."""
        import torch

        self.optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for part in np.array_split(rows, min(self.plan.accumulate, rows.size)):
            loss = self.task.loss(part) / rows.size
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self.parameters, self.plan.max_norm)
        self.optimizer.step()
        return total

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["times"]


def bucketed(lengths: AnyArray, batch_size: int, rng: np.random.Generator) -> Sequence[AnyArray]:
    """Return batches of texts that are about as long, each text once, in random order.

    Args:
        lengths: How long each text is, ``int64[n]``.
        batch_size: Texts in a batch; the last cut may have fewer.
        rng: Draws the order.

    >>> batches = bucketed(np.array([1, 9, 1, 9]), 2, np.random.default_rng(0))
    >>> sorted(sorted(each.tolist()) for each in batches)
    [[0, 2], [1, 3]]
    """
    order = rng.permutation(lengths.size)
    width = POOL * batch_size
    pools = [order[start : start + width] for start in range(0, order.size, width)]
    batches = [
        pool[start : start + batch_size]
        for pool in (each[np.argsort(lengths[each], kind="stable")] for each in pools)
        for start in range(0, pool.size, batch_size)
    ]
    return [batches[place] for place in rng.permutation(len(batches))]


@contextmanager
def _alone() -> Iterator[None]:
    """Leave the random state of the process as it was."""
    import torch

    with torch.random.fork_rng():
        yield


@contextmanager
def _enough_memory(plan: FineTuning) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        found = f"{plan.name}: the device has too little memory for a batch"
        remedy = f"raise accumulate, which is {plan.accumulate}, or lower max_length"
        raise TooLittleMemory(found, where="accumulate", remedy=remedy) from error
