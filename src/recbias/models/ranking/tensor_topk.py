"""The k largest of each row of a tensor, in the order of ``numerics.topk``, on its device."""

from __future__ import annotations

from recbias.models.ranking.tensors import Tensor


def top_k(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the columns and scores of the ``k`` largest scores of each row, best first.

    Scores are compared as ``float32``; ties go to the lower column. A score of -inf or NaN is
    nobody's: a row with fewer than ``k`` others is padded with column -1 and score NaN.

    ``torch.topk`` alone does not say which of equal scores it takes, nor in what order.

    Args:
        scores: ``(b, n)``; overwritten.
        k: How many to keep; more than ``n`` are padded.

    Returns:
        Columns ``int32 (b, k)`` and scores ``float32 (b, k)``, on the device of the scores.
    """
    import torch
    from torch.nn.functional import pad

    infinity = float("inf")
    scores = scores.float().nan_to_num_(nan=-infinity, posinf=infinity, neginf=-infinity)
    columns = _largest(scores, min(k, scores.shape[1])).sort(dim=1).values
    values = scores.gather(1, columns) + 0.0  # one 0: -0.0 would sort as less on some devices
    values, order = values.sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order).int()
    nobody = torch.isneginf(values)
    missing = (0, k - columns.shape[1])
    return (
        pad(columns.masked_fill(nobody, -1), missing, value=-1),
        pad(values.masked_fill(nobody, float("nan")), missing, value=float("nan")),
    )


def _largest(scores: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores of each row, in any order.

    Only a row whose k-th and next score are equal has more than one answer.
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
        columns[tied] = _first_of_equals(scores[tied], kth[tied, None], k)
    return columns


def _first_of_equals(scores: Tensor, kth: Tensor, k: int) -> Tensor:
    """Return the columns of the ``k`` largest scores, of those equal to ``kth`` the first."""
    import torch

    n = scores.shape[1]
    backwards = torch.arange(n, 0, -1, dtype=torch.int32, device=scores.device)
    ranks = torch.where(scores == kth, backwards, 0)
    return ranks.masked_fill_(scores > kth, n + 1).topk(k, dim=1).indices
