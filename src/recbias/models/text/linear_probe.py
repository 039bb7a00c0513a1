"""A linear probe: a linear classifier on the states of a frozen encoder."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.models.text.softmax_regression import SoftmaxRegression
from recbias.models.text.text_ranking import Blocks

MIN_RELATIVE_STD = 1e-5
"""Columns with a standard deviation below this share of the largest are taken as constant."""


def fit_probe(
    blocks: Blocks, classes: AnyArray, n_classes: int, *, strength: float, iterations: int
) -> SoftmaxRegression:
    """Fit a softmax regression on standardized states; return it for states that are not.

        p(class | h) = softmax(z W' + b'),    z = (h - mean) / std

    equals ``softmax(h W + b)`` with ``W = W' / std`` and ``b = b' - mean W``. Columns that are
    constant up to rounding are not divided by their standard deviation. The blocks hold positions
    of texts and their states ``h``, ``float32 (b, d)``; ``strength`` is that of
    ``SoftmaxRegression.fit``.

    Source:
        Alain and Bengio, "Understanding intermediate layers using linear classifier probes", ICLR
        2017 (workshop).
    """
    states = _concatenate(blocks, classes.size)
    mean, std = states.mean(axis=0), states.std(axis=0)
    std[std <= MIN_RELATIVE_STD * std.max(initial=0.0)] = 1.0
    standardized = (states - mean) / std
    probe = SoftmaxRegression.fit(
        standardized, classes, n_classes, strength=strength, iterations=iterations
    )
    weights = probe.weights / std[:, None]
    return SoftmaxRegression(weights, probe.bias - mean @ weights)


def _concatenate(blocks: Blocks, n_texts: int) -> AnyArray:
    states = np.empty((n_texts, 0), dtype=np.float32)
    for rows, block in blocks:
        if not states.shape[1]:
            states = np.empty((n_texts, block.shape[1]), dtype=np.float32)
        states[rows] = block
    return states
