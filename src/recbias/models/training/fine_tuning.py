"""Fine-tuning of models with a pretrained language model."""

from __future__ import annotations

import numpy as np

from recbias.models.training.fine_tuning_loop import FineTuningLoop
from recbias.models.training.fine_tuning_plan import FineTuning, LearningCurve, Task
from recbias.models.training.rank_processes import train_in_processes


def fine_tune(task: Task, plan: FineTuning, rng: np.random.Generator) -> LearningCurve:
    """Fine-tune a module in place, with early stopping if there are validation texts.

    The same generator gives the same weights on the same kind of device, also if training is
    interrupted within an epoch and resumed from a checkpoint: random numbers depend on the epoch
    and the step only. The global random state of torch does not change. Several devices give the
    weights of one up to rounding, and other random numbers within the module.

    Returns:
        The parts of the loss of each step; ``loss`` alone if the task does not name parts.

    Raises:
        OutOfRange: The loss is not finite, or a part is above its limit and above 1.5 times its
            value in the first step.
        TooLittleMemory: The device has too little memory for a batch.
        DeadProcess: The process of one of several devices ended.
    """
    if plan.devices > 1:
        return train_in_processes(task, plan, rng)
    return FineTuningLoop(task, plan, rng).run()
