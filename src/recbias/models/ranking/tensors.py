"""Initialization, conversion and ranking of tensors; torch is imported in functions."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray

Tensor: TypeAlias = Any  # A ``torch.Tensor``; typed as Any so that torch is not imported

GROUP = 128
"""Number of columns of which a GPU finds the largest score together."""

MIN_GROUPED = 2**14
"""Number of columns from which on they are grouped."""

OUT_OF_MEMORY_MESSAGES = ("out of memory", "can't allocate memory", "not enough memory")
"""Parts of torch's error messages when memory runs out."""

PAGE = 2**21
"""Bytes of a large page of x86; tables start at one, and so at a line of the cache."""

LARGE_TABLE = 2**20
"""Numbers of a table from which on numpy asks for large pages: 4 MB."""


def initialize_normal(
    shape: tuple[int, ...], std: float, device: Any, rng: np.random.Generator
) -> Tensor:
    """Return a parameter sampled from Normal(0, std²), with the same values on every device."""
    return create_parameter(rng.standard_normal(shape, dtype=np.float32) * np.float32(std), device)


def initialize_glorot(shape: tuple[int, int], device: Any, rng: np.random.Generator) -> Tensor:
    """Return a parameter sampled uniformly within ± sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6 / sum(shape))
    return create_parameter(
        (2 * rng.random(shape, dtype=np.float32) - 1) * np.float32(limit), device
    )


def create_parameter(values: AnyArray, device: Any) -> Tensor:
    """Return a trainable ``float32`` tensor with these initial values.

    A large table in the memory of a CPU is in large pages where numpy asks Linux for them: a step
    on random rows then finds their addresses sooner.
    """
    import torch

    if values.size < LARGE_TABLE or torch.device(device).type != "cpu":
        return torch.tensor(values, dtype=torch.float32, device=device, requires_grad=True)
    memory = np.empty(4 * values.size + PAGE, dtype=np.uint8)
    start = -memory.ctypes.data % PAGE
    table = memory[start : start + 4 * values.size].view(np.float32).reshape(values.shape)
    table[...] = values
    return torch.from_numpy(table).requires_grad_()


def create_torch_generator(rng: np.random.Generator, device: Any) -> Any:
    """Return a ``torch.Generator`` on a device, seeded by ``rng``."""
    import torch

    return torch.Generator(device=device).manual_seed(int(rng.integers(2**63 - 1)))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; only CUDA has an error class for this."""
    import torch

    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(
        text in message for text in OUT_OF_MEMORY_MESSAGES
    )


def copy_to_array(tensor: Tensor) -> AnyArray:
    """Return a copy of a tensor as an array; all processes gather one that they share."""
    if hasattr(tensor, "full_tensor"):
        tensor = tensor.full_tensor()
    is_shared = tensor.device.type == "cpu"
    array: AnyArray = tensor.detach().contiguous().cpu().numpy()
    return array.copy() if is_shared else array


def copy_to_device(array: AnyArray, device: Any) -> Tensor:
    """Return an array as a tensor on a ``torch.device``, which on a CPU shares its memory.

    To CUDA it is copied from pinned memory, for which the caller does not wait.
    """
    import torch

    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def place_like(array: AnyArray, tensor: Tensor) -> Tensor:
    """Return an array on the device of a tensor, shared by processes as the tensor is."""
    import torch

    values = torch.from_numpy(array).to(tensor.device)
    if not hasattr(tensor, "full_tensor"):
        return values
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(values, tensor.device_mesh, tensor.placements)


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the columns and values of the ``k`` largest scores of each row, best first.

    Scores ``(b, n)`` are overwritten and compared as ``float32``; ties go to the lower column,
    which ``torch.topk`` alone does not guarantee. Scores of -inf and NaN are ignored: a row with
    fewer than ``k`` other scores is padded with column -1 and score NaN. The result is columns
    ``int32 (b, k)`` and scores ``float32 (b, k)``, on the device of the scores.
    """
    import torch
    from torch.nn.functional import pad

    scores = scores.float()
    size = min(k, scores.shape[1])
    if scores.device.type == "cuda" and scores.shape[1] >= MIN_GROUPED:
        columns = _select_by_groups(scores, size)
    else:
        columns = _select_largest(_replace_special(scores), size)
    columns = columns.sort(dim=1).values
    values = scores.gather(1, columns) + 0.0  # turns -0.0, which some devices sort lower, into 0.0
    values, order = values.sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order).int()
    is_empty = torch.isneginf(values)
    padding = (0, k - columns.shape[1])
    return (
        pad(columns.masked_fill(is_empty, -1), padding, value=-1),
        pad(values.masked_fill(is_empty, float("nan")), padding, value=float("nan")),
    )


def _replace_special(scores: Tensor) -> Tensor:
    """Replace NaN by -inf in place, so that it is the smallest score."""
    infinity = float("inf")
    return scores.nan_to_num_(nan=-infinity, posinf=infinity, neginf=-infinity)


def _select_by_groups(scores: Tensor, k: int) -> Tensor:
    """Return the columns of ``_select_largest`` from a single pass over the scores.

    The ``k + 1`` largest scores of a row are in the ``k + 1`` groups of columns with the largest
    maxima: a search for them in all columns, which passes over the scores several times, is not
    needed. NaN in any group shows in its maximum.
    """
    import torch

    n_groups = scores.shape[1] // GROUP
    if n_groups <= k + 1:
        return _select_largest(_replace_special(scores), k)
    grouped = scores[:, : n_groups * GROUP].unflatten(1, (n_groups, GROUP))
    maxima, rest = grouped.amax(2), scores[:, n_groups * GROUP :]
    if bool(maxima.isnan().any() | rest.isnan().any()):
        _replace_special(scores)
        maxima = grouped.amax(2)
    groups = maxima.topk(k + 1, dim=1).indices
    members = torch.arange(GROUP, device=scores.device)
    candidates = (groups[:, :, None] * GROUP + members).flatten(1)
    others = torch.arange(n_groups * GROUP, scores.shape[1], device=scores.device)
    candidates = torch.cat([candidates, others.expand(len(scores), -1)], 1)
    values, places = scores.gather(1, candidates).topk(k + 1, dim=1)
    return _settle_ties(scores, values, candidates.gather(1, places), k)


def _select_largest(scores: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores of each row, in any order.

    The choice is ambiguous only in a row whose k-th and (k+1)-th largest scores are equal.
    """
    import torch

    n = scores.shape[1]
    if k == n:
        return torch.arange(n, device=scores.device).repeat(len(scores), 1)
    values, columns = scores.topk(k + 1, dim=1)
    return _settle_ties(scores, values, columns, k)


def _settle_ties(scores: Tensor, values: Tensor, columns: Tensor, k: int) -> Tensor:
    """Return ``k`` columns of the ``k + 1`` largest scores, the lowest of those that are equal."""
    import torch

    kth = values[:, k - 1]
    tied = ((kth == values[:, k]) & ~torch.isneginf(kth)).nonzero().squeeze(1)
    columns = columns[:, :k].contiguous()
    if len(tied):
        columns[tied] = _break_ties(scores[tied], kth[tied, None], k)
    return columns


def _break_ties(scores: Tensor, kth: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores, the lowest of those equal to ``kth``."""
    import torch

    n = scores.shape[1]
    descending = torch.arange(n, 0, -1, dtype=torch.int32, device=scores.device)
    priorities = torch.where(scores == kth, descending, 0)
    return priorities.masked_fill_(scores > kth, n + 1).topk(k, dim=1).indices
