"""Perplexity of sentences from the probabilities of their tokens, and its outliers."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, FloatArray


def compute_perplexities(log_probabilities: FloatArray, owners: AnyArray, n: int) -> FloatArray:
    """Return the perplexity of each sentence.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    where i runs over the n tokens of the sentence that have a probability. It is 1 or more, NaN
    for a sentence without scored tokens, and infinite where the exponential overflows.

    Args:
        log_probabilities: Natural log-probability of each token, ``float64[t]``; NaN (such as the
            first token, which has no context) is excluded.
        owners: Sentence of each token, ``int[t]``, from 0.
        n: Number of sentences.

    >>> compute_perplexities(np.log([0.5, 0.125, 0.25]), np.array([0, 0, 2]), 3).tolist()
    [4.0, nan, 4.0]
    """
    scored = ~np.isnan(log_probabilities)
    owners = owners[scored]
    totals = np.bincount(owners, weights=log_probabilities[scored], minlength=n)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.exp(-totals / np.bincount(owners, minlength=n)))


def mark_within_deviations(values: FloatArray, deviations: float) -> BoolArray:
    """Mark the values within ``deviations`` c standard deviations of the mean, ``bool[n]``.

        |x - m| ≤ c σ,    σ² = (1/n) Σ (x - m)²

    m is the mean and σ the population standard deviation of the values that are not NaN. NaN is
    never within; equal values always are.

    >>> mark_within_deviations(np.array([1.0, 1, 1, 1, 9, np.nan]), 1.5).tolist()
    [True, True, True, True, False, False]
    """
    defined = ~np.isnan(values)
    if not defined.any():
        return defined
    mean, deviation = values[defined].mean(), values[defined].std()
    slack = 1e-12 * np.abs(values[defined]).max()  # the mean of equal values has a rounding error
    return np.asarray(np.abs(values - mean) <= deviations * deviation + slack)
