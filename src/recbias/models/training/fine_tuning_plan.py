"""What a fine-tuning is about: its task, its optimization, and the learning curve it returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from recbias.core.arrays import AnyArray, FloatArray
from recbias.models.ranking.tensors import Tensor
from recbias.numerics.devices import Precision

Strategy: TypeAlias = Literal["ddp", "fsdp"]
"""How several devices train one model: each has all of it, or a share of its weights."""


class Task(Protocol):
    """A module to be fine-tuned, with its training texts."""

    @property
    def module(self) -> Any:
        """The ``torch`` module."""

    @property
    def lengths(self) -> AnyArray:
        """The number of tokens of each training text, ``int64[n]``."""

    def loss(self, rows: AnyArray) -> Tensor:
        """Return the sum of the losses of a batch of training texts, by position."""

    @property
    def has_validation_texts(self) -> bool:
        """Whether there are validation texts."""

    def validation_score(self) -> float:
        """Return the score on the validation texts; higher is better."""


@runtime_checkable
class HasLossParts(Protocol):
    """A task whose loss combines others, which make a learning curve."""

    @property
    def part_names(self) -> tuple[str, ...]:
        """The names of the parts."""

    @property
    def limits(self) -> Mapping[str, float]:
        """The value of a part above which training has diverged, by its name."""

    def read_parts(self) -> Mapping[str, Tensor | float]:
        """Return the parts of the last loss by name, each the sum over the texts of the batch."""


@runtime_checkable
class HasBody(Protocol):
    """A task most of whose work is one part of its module."""

    @property
    def body(self) -> Any:
        """The part, whose passes depend on its inputs and nothing else; None if there is none."""


@runtime_checkable
class PreparesStep(Protocol):
    """A task whose loss of a batch depends on all texts of the step that the batch is part of."""

    def prepare_step(self, rows: AnyArray) -> None:
        """Receive the texts of the next step, by position."""


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


@dataclass(frozen=True)
class StepLoss:
    """The loss of a step, the mean over its texts, and its parts by name.

    Each is a sum of terms, which may be tensors: to read one is to wait for the device.
    """

    total: Sequence[Any]
    parts: Mapping[str, Sequence[Any]]
    epoch: int = 0
    step: int = 0

    def read(self) -> tuple[float, Mapping[str, float]]:
        """Return the loss and its parts as numbers."""
        parts = {name: sum(map(float, terms)) for name, terms in self.parts.items()}
        return sum(map(float, self.total)), parts


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
    # Number of devices that compute a share of each batch, each in a process of its own
    devices: int = 1
    strategy: Strategy = "ddp"  # How they share the model

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
