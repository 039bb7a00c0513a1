"""Fine-tuning of models with a pretrained language model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from recbias.core.errors import TooLittleMemory
from recbias.core.stage_context import Checkpoints
from recbias.models.training.batches import can_split, warn_about_split
from recbias.models.training.fine_tuning_loop import FineTuningLoop
from recbias.models.training.fine_tuning_plan import FineTuning, LearningCurve, Task
from recbias.models.training.several_devices.rank_processes import train_in_processes


def fine_tune(task: Task, plan: FineTuning, rng: np.random.Generator) -> LearningCurve:
    """Fine-tune a module in place, with early stopping if there are validation texts.

    The same generator gives the same weights on the same kind of device, also if training is
    interrupted within an epoch and resumed from a checkpoint: random numbers depend on the epoch
    and the step only. On CUDA, sums of gradients and passes that are captured as graphs make these
    weights equal up to rounding. The global random state of torch does not change. Several devices
    give the weights of one up to rounding, and other random numbers within the module. When a
    device is full, batches are computed in twice as many parts, with a warning.

    Returns:
        The parts of the loss of each step; ``loss`` alone if the task does not name parts.

    Raises:
        OutOfRange: The loss is not finite, or a part is above its limit and above 1.5 times its
            value in the first step.
        TooLittleMemory: The device has too little memory for a text.
        DeadProcess: The process of one of several devices ended.
    """
    if plan.devices == 1:
        return FineTuningLoop(task, plan, rng).run()
    checkpoint = Checkpoints.current().load()
    while True:
        try:
            return train_in_processes(task, plan, rng, checkpoint)
        except TooLittleMemory:  # of one process, while others may wait for its gradients
            if not can_split(plan, plan.batch_parts, plan.batch_size // plan.devices):
                raise
        plan = replace(plan, batch_parts=2 * plan.batch_parts)
        warn_about_split(plan.name, plan.batch_parts)
