"""Perplexity of sentences from the probabilities of their tokens."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray


def compute_perplexities(log_probabilities: FloatArray, owners: AnyArray, n: int) -> FloatArray:
    """Return the perplexity of each sentence.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    where i runs over the n tokens of the sentence that have a probability.

    Args:
        log_probabilities: Natural log-probability of each token, ``float64[t]``; NaN (such as the
            first token, which has no context) is excluded.
        owners: Sentence of each token, ``int[t]``, from 0.
        n: Number of sentences.

    Returns:
        ``float64[n]``, 1 or more; NaN for a sentence without scored tokens, infinite where the
        exponential overflows.

    >>> compute_perplexities(np.log([0.5, 0.125, 0.25]), np.array([0, 0, 2]), 3).tolist()
    [4.0, nan, 4.0]
    """
    scored = ~np.isnan(log_probabilities)
    owners = owners[scored]
    totals = np.bincount(owners, weights=log_probabilities[scored], minlength=n)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.exp(-totals / np.bincount(owners, minlength=n)))
