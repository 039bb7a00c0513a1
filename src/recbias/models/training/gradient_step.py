"""The step of an optimizer: gradients of a batch, in parts where a device is full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from recbias.models.ranking.tensors import Tensor, is_out_of_memory
from recbias.models.training.batches import warn_about_split
from recbias.models.training.captured.steps import CapturedStep
from recbias.models.training.optimizer import Optimizer
from recbias.models.training.progress import HasBuffers
from recbias.models.training.schedule import Schedule

MIN_CAPTURED_STEPS = 20
"""Number of steps of an epoch from which on a step is captured."""


@runtime_checkable
class CrossesBatch(Protocol):
    """A learner whose loss may combine each sample of a batch with the others."""

    @property
    def crosses_batch(self) -> bool:
        """Whether it does, so that the loss of a batch is not the sum of those of its parts."""


@runtime_checkable
class HasFixedShapes(Protocol):
    """A learner whose loss is the same sequence of kernels for each batch of a size."""

    @property
    def generators(self) -> Sequence[Any]:
        """The generators of random numbers in the loss, the same objects in each epoch."""


@dataclass
class GradientStep:
    """A step of an optimizer; a batch for which memory runs out is split from then on.

    Args:
        learner: A ``training.loop.Learner``.
        optimizer: Moves its parameters.
        schedule: The settings of the training.
        n_parts: Number of parts of a batch.
    """

    learner: Any
    optimizer: Optimizer
    schedule: Schedule
    n_parts: int = 1

    def __post_init__(self) -> None:
        self.device = self.learner.parameters()[0].device
        self.captured: CapturedStep | None = None

    def expect(self, n_samples: int) -> None:
        """Capture the step on CUDA if epochs of this size have many of one shape."""
        size = self.schedule.batch_size
        is_worth_it = self.device.type == "cuda" and n_samples >= MIN_CAPTURED_STEPS * size
        if isinstance(self.learner, HasFixedShapes) and is_worth_it and self.captured is None:
            self.captured = CapturedStep(
                self.schedule.name,
                self._take_step,
                self.optimizer.zero_grad,
                size,
                self.learner.generators,
            )

    def __call__(self, *batch: Tensor) -> Tensor:
        """Return the loss of a batch, and move the parameters."""
        import torch

        if self.captured is not None and self.n_parts == 1:
            total = self.captured(*batch)
            if total is not None:
                return total
        while True:
            try:
                self.optimizer.zero_grad()
                return self._take_step(*batch)
            except (RuntimeError, MemoryError) as error:
                if not (is_out_of_memory(error) and self._can_split(len(batch[0]))):
                    raise
            self.n_parts *= 2
            warn_about_split(self.schedule.name, self.n_parts, setting="")
            if self.device.type == "cuda":
                torch.cuda.empty_cache()

    def _can_split(self, n_samples: int) -> bool:
        """Return whether parts have the gradient of the batch, and none is recorded yet."""
        is_crossed = isinstance(self.learner, CrossesBatch) and self.learner.crosses_batch
        is_sum = not (is_crossed or isinstance(self.learner, HasBuffers))
        return is_sum and self.optimizer.rows is None and self.n_parts < n_samples

    def _take_step(self, *batch: Tensor) -> Tensor:
        """Add the gradients of a batch, and move the parameters; return the loss."""
        import torch

        mixed = self.schedule.mixed and self.device.type == "cuda"
        total = torch.zeros((), device=self.device)
        parts = [batch]
        if self.n_parts > 1:
            size = -(-len(batch[0]) // self.n_parts)
            parts = [*zip(*(tensor.split(size) for tensor in batch), strict=True)]
        for part in parts:
            mixed_precision = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=mixed)
            with mixed_precision, self.optimizer.record():
                loss = self.learner.loss(*part)
            loss.backward()
            total += loss.detach()
        self.optimizer.step()
        return total
