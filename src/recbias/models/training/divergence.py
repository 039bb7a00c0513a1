"""What goes wrong in training, and which setting to change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.core.stage_context import warn
from recbias.models.ranking.tensors import Tensor, is_out_of_memory
from recbias.models.training.schedule import LARGE, Schedule


class Plan(Protocol):
    """What a message says of a training."""

    @property
    def name(self) -> str:
        """The model."""
        ...

    @property
    def epochs(self) -> int:
        """How often its samples are gone through, at most."""
        ...


def check_rate(schedule: Schedule) -> None:
    """Raise OutOfRange where steps are so short that ``float32`` has none of them."""
    with np.errstate(under="ignore", over="ignore"):
        vanishes = np.float32(schedule.learning_rate) == 0
    if vanishes:
        found = f"{schedule.name} would learn nothing: {schedule.learning_rate:g} is 0 in float32"
        raise OutOfRange(found, where="learning_rate", remedy="raise learning_rate")


def check_finite(
    loss: float, parameters: Sequence[Tensor], epoch: int, schedule: Schedule
) -> None:
    """Raise OutOfRange where a loss or a parameter is no longer finite."""
    # 0 times what is not finite is not a number; it is many times as fast as torch.isfinite
    if math.isfinite(loss) and not any(float((each.detach() * 0).sum()) for each in parameters):
        return
    raise diverged(schedule, epoch, loss, *_steepest(schedule))


def diverged(plan: Plan, epoch: int, loss: float, where: str, value: float) -> OutOfRange:
    """Return what is raised where the loss is no longer finite, with the setting to lower."""
    found = f"{plan.name} diverged in epoch {epoch} of {plan.epochs}: the loss is {loss:g}"
    return OutOfRange(found, where=where, remedy=f"lower {where}, which is {value:g}")


def _steepest(schedule: Schedule) -> tuple[str, float]:
    """Return the setting to lower: a weight that alone takes a step too far, or the rate."""
    regs = {name: each for name, each in schedule.others.items() if name.startswith("reg")}
    name = max(regs, key=lambda each: regs[each], default="")
    if name and schedule.learning_rate < 1 < regs[name] * schedule.learning_rate:
        return name, regs[name]
    return "learning_rate", schedule.learning_rate


def warn_of_no_progress(losses: Sequence[float], schedule: Schedule) -> None:
    """Say so where the loss did not fall: a bounded loss stays finite whatever the steps."""
    if len(losses) > 1 and losses[-1] >= losses[0]:
        said = f"{schedule.name} learned nothing: its loss is {losses[-1]:.4g} after epoch"
        said += f" {len(losses)} and was {losses[0]:.4g} after the first"
        warn(f"{said}; lower learning_rate, which is {schedule.learning_rate:g}")


@contextmanager
def enough_memory(schedule: Schedule, *, by_samples: bool) -> Iterator[None]:
    """Raise TooLittleMemory, with what to lower, where memory runs out inside."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        found = f"{schedule.name}: the device has too little memory to learn"
        large: dict[str, int] = {} if by_samples else {"batch_size": schedule.batch_size}
        large |= {each: schedule.others[each] for each in LARGE if each in schedule.others}
        sizes = " or ".join(f"{name}, which is {n:,}" for name, n in large.items())
        where, remedy = next(iter(large), ""), f"lower {sizes or 'what makes it large'}"
        raise TooLittleMemory(found, where=where, remedy=remedy) from error
