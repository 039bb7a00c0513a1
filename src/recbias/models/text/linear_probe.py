"""A linear classifier of the states of an encoder that is left as it is."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.text.softmax_regression import SoftmaxRegression
from recbias.models.text.text_ranking import Blocks

STILL = 1e-5
"""Share of the largest deviation of a column below which a column says nothing."""


def probed(
    blocks: Blocks, wanted: AnyArray, n_classes: int, *, strength: float, iterations: int
) -> SoftmaxRegression:
    """Return the classifier of states as they are, learned on standardised ones.

        p(class | h) = softmax(z W' + b'),    z = (h - mean) / std

    is ``softmax(h W + b)`` with ``W = W' / std`` and ``b = b' - mean W``; a column of states that
    are all equal, but for the last digits of float32, is left as it is.

    Args:
        blocks: Positions of texts, and their states ``h``, ``float32 (b, d)``.
        wanted: The class of each text, ``int64[n]``.
        n_classes: How many classes there are.
        strength: C of ``|W'|² / 2 + C Σ -log p``.
        iterations: Steps of L-BFGS, at most.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop).
    """
    states = _together(blocks, wanted.size)
    mean, std = states.mean(axis=0), states.std(axis=0)
    std[std <= STILL * std.max(initial=0.0)] = 1.0
    found = SoftmaxRegression.learned(
        (states - mean) / std, wanted, n_classes, strength=strength, iterations=iterations
    )
    weights = found.weights / std[:, None]
    return SoftmaxRegression(weights, found.bias - mean @ weights)


def _together(blocks: Blocks, n: int) -> AnyArray:
    states = np.empty((n, 0), dtype=np.float32)
    for rows, block in blocks:
        if not states.shape[1]:
            states = np.empty((n, block.shape[1]), dtype=np.float32)
        states[rows] = block
    return states
