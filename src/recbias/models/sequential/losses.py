"""Losses of predicted next items: all items or sampled ones compete with the true one."""

from __future__ import annotations

from recbias.models.ranking.tensors import Tensor

EPSILON = 1e-24  # Keeps the logarithm of BPR-max finite


def sum_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Return Σ -ln softmax(scores)_target over rows of scores of all items, ``(n, n_items)``."""
    from torch.nn.functional import cross_entropy

    return cross_entropy(scores, targets, reduction="sum")


def sum_sampled_cross_entropy(positive: Tensor, negatives: Tensor) -> Tensor:
    """Return Σ -ln softmax over the target, ``(n,)``, and its negatives, ``(n, k)``."""
    import torch

    scores = torch.cat([positive[:, None], negatives], 1)
    return (scores.logsumexp(1) - positive).sum()


def sum_binary_cross_entropy(positive: Tensor, negatives: Tensor) -> Tensor:
    """Return Σ -ln σ(s_target) - Σ_j ln(1 - σ(s_j)) over the negatives."""
    from torch.nn.functional import logsigmoid

    return -logsigmoid(positive).sum() - logsigmoid(-negatives).sum()


def sum_bpr_max(positive: Tensor, negatives: Tensor, reg: float) -> Tensor:
    """Return Σ -ln Σ_j w_j σ(s_target - s_j) + reg Σ_j w_j s_j², w the softmax of the negatives.

    A negative with the score -inf does not count; a row of nothing else has no loss.

    >>> import torch
    >>> sum_bpr_max(torch.zeros(1), torch.zeros(1, 4), 0.0).item() == torch.tensor(2.0).log()
    tensor(True)
    """
    import torch

    counts = torch.isfinite(negatives)
    has_negative = counts.any(1)
    positive, negatives, counts = (
        positive[has_negative],
        negatives[has_negative],
        counts[has_negative],
    )
    weights = negatives.softmax(1)
    finite = negatives.masked_fill(~counts, 0.0)
    wins = (weights * (positive[:, None] - finite).sigmoid()).sum(1)
    return reg * (weights * finite.square()).sum() - (wins + EPSILON).log().sum()
