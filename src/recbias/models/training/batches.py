"""The batches of a fine-tuning, and their parts where a device is full."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.stage_context import warn
from recbias.models.training.fine_tuning_plan import FineTuning

POOL = 64
"""Number of batches whose texts are sorted by length together: large enough for little padding,
small enough that batches differ between epochs."""


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


def can_split(plan: FineTuning, n_parts: int, n_texts: int) -> bool:
    """Return whether batches may be computed in twice as many parts.

    A part has at least one text. Where ``batch_parts`` is not a setting of the model, the loss of
    a batch is not the sum of those of its parts.

    >>> plan = FineTuning(name="", epochs=1, batch_size=4, learning_rate=1.0)
    >>> can_split(plan, 2, 4), can_split(plan, 4, 4)
    (True, False)
    """
    return plan.memory_setting == "batch_parts" and n_parts < n_texts


def warn_about_split(name: str, n_parts: int, setting: str = "batch_parts") -> None:
    """Warn that the device is full, and that a batch is computed in parts from now on."""
    message = f"{name}: the device is full, so each batch is computed in {n_parts} parts from now"
    message += " on; the gradients are the same up to rounding"
    warn(f"{message}. Set {setting}: {n_parts}" if setting else message)
