"""The k largest scores of each row of a tensor, in the order of ``numerics.sparse.topk``."""

from __future__ import annotations

from recbias.models.ranking.tensors import Tensor


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the columns and values of the ``k`` largest scores of each row, best first.

    Scores ``(b, n)`` are overwritten and compared as ``float32``; ties go to the lower column,
    which ``torch.topk`` alone does not guarantee. Scores of -inf and NaN are ignored: a row with
    fewer than ``k`` other scores is padded with column -1 and score NaN. The result is columns
    ``int32 (b, k)`` and scores ``float32 (b, k)``, on the device of the scores.
    """
    import torch
    from torch.nn.functional import pad

    infinity = float("inf")
    scores = scores.float().nan_to_num_(nan=-infinity, posinf=infinity, neginf=-infinity)
    columns = _select_largest(scores, min(k, scores.shape[1])).sort(dim=1).values
    values = scores.gather(1, columns) + 0.0  # turns -0.0, which some devices sort lower, into 0.0
    values, order = values.sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order).int()
    is_empty = torch.isneginf(values)
    padding = (0, k - columns.shape[1])
    return (
        pad(columns.masked_fill(is_empty, -1), padding, value=-1),
        pad(values.masked_fill(is_empty, float("nan")), padding, value=float("nan")),
    )


def _select_largest(scores: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores of each row, in any order.

    The choice is ambiguous only in a row whose k-th and (k+1)-th largest scores are equal.
    """
    import torch

    n = scores.shape[1]
    if k == n:
        return torch.arange(n, device=scores.device).repeat(len(scores), 1)
    values, columns = scores.topk(k + 1, dim=1)
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
