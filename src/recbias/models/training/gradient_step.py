"""The step of an optimizer: gradients of a batch, in parts where a device is full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from recbias.core.stage_context import warn
from recbias.models.ranking.tensors import Tensor, is_out_of_memory
from recbias.models.training.batches import warn_about_split
from recbias.models.training.optimizer import Optimizer
from recbias.models.training.progress import HasBuffers
from recbias.models.training.schedule import Schedule

MIN_COMPILED_STEPS = 20_000
"""Number of steps from which on a loss is compiled, which takes about as long as they save."""

COMPILED_DEVICES = frozenset({"cuda"})
"""The kinds of devices for which a loss is compiled."""


@runtime_checkable
class CrossesBatch(Protocol):
    """A learner whose loss may combine each sample of a batch with the others."""

    @property
    def crosses_batch(self) -> bool:
        """Whether it does, so that the loss of a batch is not the sum of those of its parts."""


@runtime_checkable
class HasFixedShapes(Protocol):
    """A learner whose loss ``torch.compile`` can compile as a whole."""

    @property
    def fixed_shapes(self) -> bool:
        """Whether the size of a batch fixes the shapes of all tensors, and none is random."""


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
        self.loss: Callable[..., Tensor] = self.learner.loss

    def expect(self, n_samples: int) -> None:
        """Compile the loss on CUDA if the training has many steps of epochs of this size."""
        n_steps = self.schedule.epochs * (n_samples // self.schedule.batch_size)
        is_fixed = isinstance(self.learner, HasFixedShapes) and self.learner.fixed_shapes
        is_worth_it = is_fixed and n_steps >= MIN_COMPILED_STEPS
        is_here = self.device.type in COMPILED_DEVICES
        if is_here and is_worth_it and not isinstance(self.loss, CompiledLoss):
            self.loss = CompiledLoss(
                self.schedule.name, self.learner.loss, self.schedule.batch_size
            )

    def __call__(self, *batch: Tensor) -> Tensor:
        """Return the loss of a batch, and move the parameters."""
        import torch

        while True:
            try:
                return self._move(*batch)
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

    def _move(self, *batch: Tensor) -> Tensor:
        import torch

        mixed = self.schedule.mixed and self.device.type == "cuda"
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self.device)
        parts = [batch]
        if self.n_parts > 1:
            size = -(-len(batch[0]) // self.n_parts)
            parts = [*zip(*(tensor.split(size) for tensor in batch), strict=True)]
        for part in parts:
            mixed_precision = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=mixed)
            with mixed_precision, self.optimizer.record():
                loss = self.loss(*part)
            loss.backward()
            total += loss.detach()
        self.optimizer.step()
        return total


class CompiledLoss:
    """A loss compiled by ``torch.compile`` for batches of one size.

    Smaller batches, the last of an epoch or parts of one, are not compiled. If compiling fails, no
    batch is, and a warning says so once.

    Args:
        name: The model, in the warning.
        loss: Takes the tensors of a batch.
        batch_size: The size.
    """

    def __init__(self, name: str, loss: Callable[..., Tensor], batch_size: int) -> None:
        import torch

        self.name, self.loss, self.batch_size = name, loss, batch_size
        self.compiled: Callable[..., Tensor] | None = torch.compile(
            loss, fullgraph=True, dynamic=False
        )

    def __call__(self, *batch: Tensor) -> Tensor:
        """Return the loss of a batch."""
        if self.compiled is None or len(batch[0]) != self.batch_size:
            return self.loss(*batch)
        try:
            return self.compiled(*batch)
        except (RuntimeError, ImportError, OSError, AssertionError) as error:
            if is_out_of_memory(error):
                raise
            self.compiled = None
            reason = " ".join(str(error).strip().split("\n\n")[0].split())
            warn(
                f"{self.name}: torch.compile failed ({reason}), so training is not compiled: it "
                "is slower, and the result is the same up to rounding"
            )
        return self.loss(*batch)
