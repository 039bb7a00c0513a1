"""The batches of a training, and their parts where a device is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.core.errors import TooLittleMemory
from recbias.core.stage_context import warn
from recbias.models.ranking.tensors import Tensor, copy_to_device, is_out_of_memory
from recbias.models.training.fine_tuning_plan import FineTuning

POOL = 64
"""Number of batches whose texts are sorted by length together: large enough for little padding,
small enough that batches differ between epochs."""

CHUNK = 2**20
"""Number of samples that are copied to a device together, at least a batch."""


def iterate_batches(
    samples: Sequence[AnyArray], batch_size: int, device: Any, *, chunk: int = CHUNK
) -> Iterator[Sequence[Tensor]]:
    """Yield the batches of an epoch as tensors on a ``torch.device``.

    Samples are copied in chunks: on CUDA from pinned memory, the next chunk while the batches of
    this one are computed. Codes become 64-bit integers, which ``index_add_`` requires.

    >>> import torch
    >>> samples = [np.arange(5, dtype=np.int32)]
    >>> [batch[0].tolist() for batch in iterate_batches(samples, 2, torch.device("cpu"))]
    [[0, 1], [2, 3], [4]]
    """
    import torch

    n_samples, size = len(samples[0]), max(1, chunk // batch_size) * batch_size

    def copy(start: int) -> list[Tensor]:
        tensors = [copy_to_device(array[start : start + size], device) for array in samples]
        return [tensor.long() if tensor.dtype == torch.int32 else tensor for tensor in tensors]

    following = copy(0)
    for start in range(0, n_samples, size):
        tensors = following
        if start + size < n_samples:
            following = copy(start + size)
        for first in range(0, len(tensors[0]), batch_size):
            yield [tensor[first : first + batch_size] for tensor in tensors]


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


@contextmanager
def report_out_of_memory(plan: FineTuning) -> Iterator[None]:
    """Raise TooLittleMemory, with a remedy, if memory runs out in the block."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        problem = f"{plan.name}: the device has too little memory for a batch"
        where, remedy = plan.memory_setting, f"lower {plan.memory_setting} or max_length"
        if where == "batch_parts":  # of which there are as many as texts
            where, remedy = "max_length", "lower max_length, or use a smaller model"
        raise TooLittleMemory(problem, where=where, remedy=remedy) from error
