"""The settings of a training, and the errors and warnings that name them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.core.stage_context import warn
from recbias.models.ranking.tensors import Tensor, is_out_of_memory

MEMORY_SETTINGS = ("negatives", "embedding_size")
"""Settings besides the batch size that increase the memory use."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The settings of a training.

    Args:
        name: The model, in progress and error messages.
        epochs: Maximum number of epochs.
        batch_size: Samples per step; for a learner with ``SampleSteps`` only on a GPU.
        learning_rate: The learning rate.
        optimizer: ``adam`` with default moments, or plain ``sgd``. A loss is a sum, so that a step
            of ``sgd`` on a batch approximates as many steps on single samples.
        adversarial_epochs: How many of the last epochs have a loss with one more term.
        patience: Epochs without a better validation nDCG@10 before early stopping; 0 disables it.
        threads: Number of CPU threads. One is fastest for embedding look-ups and makes sums
            reproducible across machines; large matrix products profit from more.
        mixed: Compute matrix products in bfloat16 on CUDA.
        settings: Further settings of the model by name, for error messages.
    """

    name: str
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: Literal["adam", "sgd"] = "adam"
    adversarial_epochs: int = 0
    patience: int = 0
    threads: int = 1
    mixed: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_model(
        cls, model: Any, name: str, optimizer: Literal["adam", "sgd"] = "adam"
    ) -> Schedule:
        """Return the schedule that the settings of a model define."""
        return cls(
            name=name,
            epochs=model.epochs,
            batch_size=model.batch_size,
            learning_rate=model.learning_rate,
            optimizer=optimizer,
            adversarial_epochs=getattr(model, "adversarial_epochs", 0),
            patience=model.patience,
            settings={
                name: value
                for name, value in vars(model).items()
                if name in MEMORY_SETTINGS or name.startswith("reg")
            },
        )


def validate_learning_rate(schedule: Schedule) -> None:
    """Raise OutOfRange if the learning rate is 0 in ``float32``."""
    with np.errstate(under="ignore", over="ignore"):
        vanishes = np.float32(schedule.learning_rate) == 0
    if vanishes:
        problem = f"{schedule.name} cannot learn: {schedule.learning_rate:g} is 0 in float32"
        raise OutOfRange(problem, where="learning_rate", remedy="raise learning_rate")


def validate_finite(
    loss: float, parameters: Sequence[Tensor], epoch: int, schedule: Schedule
) -> None:
    """Raise OutOfRange if the loss or a parameter is not finite."""
    # 0 times a value that is not finite is NaN; this is much faster than torch.isfinite
    if math.isfinite(loss) and not any(
        float((tensor.detach() * 0).sum()) for tensor in parameters
    ):
        return
    raise create_divergence_error(schedule, epoch, loss, _select_setting_to_lower(schedule))


def create_divergence_error(
    plan: Any,
    epoch: int,
    loss: float,
    setting: tuple[str, float],
    *,
    where: str = "",
    parts: Mapping[str, float] | None = None,
) -> OutOfRange:
    """Return the error for a training that diverged, with the setting of a plan to lower.

    ``setting`` is its name and value; ``where`` is the step within the epoch, ``parts`` are losses
    that the loss combines.
    """
    name, value = setting
    problem = f"{plan.name} diverged in epoch {epoch} of {plan.epochs}"
    problem += f", {where}: the loss is {loss:g}" if where else f": the loss is {loss:g}"
    if parts:
        problem += f" ({', '.join(f'{part} {size:g}' for part, size in parts.items())})"
    return OutOfRange(problem, where=name, remedy=f"lower {name}, which is {value:g}")


def _select_setting_to_lower(schedule: Schedule) -> tuple[str, float]:
    """Return the learning rate, or a regularization weight if it alone makes steps too large."""
    regs = {name: reg for name, reg in schedule.settings.items() if name.startswith("reg")}
    name = max(regs, key=lambda name: regs[name], default="")
    if name and schedule.learning_rate < 1 < regs[name] * schedule.learning_rate:
        return name, regs[name]
    return "learning_rate", schedule.learning_rate


def warn_about_stalled_loss(losses: Sequence[float], schedule: Schedule) -> None:
    """Warn if the loss did not decrease; a bounded loss stays finite at any learning rate.

    Losses with the term of adversarial epochs are compared with each other only.
    """
    n_plain = max(schedule.epochs - schedule.adversarial_epochs, 0)
    first = n_plain if n_plain < len(losses) else 0
    if len(losses) > first + 1 and losses[-1] >= losses[first]:
        message = f"{schedule.name} learned nothing: its loss is {losses[-1]:.4g} after epoch"
        message += f" {len(losses)} and was {losses[first]:.4g} after epoch {first + 1}"
        warn(f"{message}; lower learning_rate, which is {schedule.learning_rate:g}")


@contextmanager
def report_out_of_memory(schedule: Schedule, *, by_samples: bool) -> Iterator[None]:
    """Raise TooLittleMemory, with the settings to lower, if memory runs out in the block.

    ``by_samples`` is whether a step uses one sample, so that the batch size has no effect.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        problem = f"{schedule.name}: the device has too little memory to learn"
        sizes: dict[str, int] = {} if by_samples else {"batch_size": schedule.batch_size}
        sizes |= {
            name: schedule.settings[name] for name in MEMORY_SETTINGS if name in schedule.settings
        }
        settings = " or ".join(f"{name}, which is {size:,}" for name, size in sizes.items())
        where = next(iter(sizes), "")
        remedy = f"lower {settings or 'the settings that increase the memory use'}"
        raise TooLittleMemory(problem, where=where, remedy=remedy) from error
