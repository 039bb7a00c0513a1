"""Log-probabilities of tokens from logits."""

from __future__ import annotations

from typing import Any

from recbias.core.arrays import AnyArray, FloatArray

ROWS = 64
"""The number of rows of logits that are normalised together, so that they stay in the cache."""


def read_targets(logits: Any, targets: AnyArray, rows: AnyArray) -> FloatArray:
    """Return the log-probability of each target token, ``float64[m]``.

        ln p = logit of the target - ln Σ_v exp(logit of v)

    Args:
        logits: The logits of the vocabulary, a ``torch`` tensor ``(n, vocabulary)``.
        targets: The target tokens, ``int64[m]``.
        rows: The row of logits of each target, ``int64[m]``.

    >>> import numpy as np, torch
    >>> logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    >>> np.exp(read_targets(logits, np.array([1, 0]), np.array([0, 0]))).round(6).tolist()
    [0.25, 0.5]
    """
    import torch

    blocks = [logits[start : start + ROWS] for start in range(0, len(logits), ROWS)]
    normalizers = torch.cat([block.float().logsumexp(-1) for block in blocks])
    places = torch.from_numpy(rows).to(logits.device)
    columns = torch.from_numpy(targets).to(logits.device)
    values = logits[places, columns].float() - normalizers[places]
    array: FloatArray = values.double().cpu().numpy()
    return array
