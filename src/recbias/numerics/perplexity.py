"""How likely sentences are, from the probabilities of their tokens."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray


def perplexities(log_probabilities: FloatArray, owners: AnyArray, n: int) -> FloatArray:
    """Return the perplexity of each sentence.

        PPL(x) = exp( -(1/n) Σ_i ln p(x_i | x_<i) )

    over the tokens of the sentence that have a probability.

    Args:
        log_probabilities: Natural logarithms, one a token, ``float64[t]``; NaN (a first token,
            which has nothing before it) is left out.
        owners: The sentence of each token, ``int[t]``, from 0.
        n: How many sentences there are.

    Returns:
        ``float64[n]``, 1 or more; NaN where a sentence has no scored token, infinite where the
        mean is too small for a number.

    >>> perplexities(np.log([0.5, 0.125, 0.25]), np.array([0, 0, 2]), 3).tolist()
    [4.0, nan, 4.0]
    """
    scored = ~np.isnan(log_probabilities)
    owners = owners[scored]
    totals = np.bincount(owners, weights=log_probabilities[scored], minlength=n)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.exp(-totals / np.bincount(owners, minlength=n)))
