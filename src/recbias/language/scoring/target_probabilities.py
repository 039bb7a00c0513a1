"""Logits at some positions of a batch, and log-probabilities of tokens from logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recbias.core.arrays import AnyArray, FloatArray

ROWS = 64
"""The number of rows of logits that a CPU normalises together, so that they stay in the cache."""

DEVICE_LOGITS = 2**26
"""The number of logits that a GPU normalises together, in single precision."""


def compute_logits(
    network: Any, body: Any, inputs: Mapping[str, Any], rows: AnyArray, columns: AnyArray
) -> Any:
    """Return the logits at some positions of a batch, a ``torch`` tensor ``(m, vocabulary)``.

    A head that reads the last hidden states of the body computes no others.

    Args:
        network: The ``torch`` module with its language-model head.
        body: The part of the network before the head.
        inputs: The arguments of a pass.
        rows: The text of each position, ``int64[m]``.
        columns: Its token, ``int64[m]``.
    """
    import torch

    places = tuple(torch.from_numpy(indices).to(network.device) for indices in (rows, columns))

    def select(_module: Any, _inputs: Any, output: Any) -> None:
        output.last_hidden_state = output.last_hidden_state[places][None]

    handle = None if body is network else body.register_forward_hook(select)
    try:
        logits = network(**inputs).logits
    finally:
        if handle is not None:
            handle.remove()
    return logits[0] if logits.shape[:2] == (1, rows.size) else logits[places]


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

    size = ROWS if logits.device.type == "cpu" else max(1, DEVICE_LOGITS // logits.shape[1])
    blocks = [logits[start : start + size] for start in range(0, len(logits), size)]
    normalizers = torch.cat([block.float().logsumexp(-1) for block in blocks])
    places = torch.from_numpy(rows).to(logits.device)
    columns = torch.from_numpy(targets).to(logits.device)
    values = logits[places, columns].float() - normalizers[places]
    array: FloatArray = values.double().cpu().numpy()
    return array
