"""Perplexity of sentences from the probabilities of their tokens, and its outliers."""

from __future__ import annotations

from collections.abc import Sequence

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


def linearise_means(
    values: FloatArray, copies: FloatArray, sets: Sequence[FloatArray], deviations: float
) -> FloatArray:
    """Return values of units whose mean is that without outliers, and whose variance is its own.

        z_i = T + w_i (x_i - T) / w̄ + Σ_s Σ_± g_s± (n / n_s) (h_s± (y_si) - mean h_s±)
        h_s± (y) = u ± c (u² - 1) / 2,    u = (y - m_s) / σ_s

    T is the mean of x over the units kept (w_i = 1): those of which each copy y_s is within c
    population standard deviations σ_s of the mean m_s of its set of n_s values. h is the
    influence of a value on the limit m_s ± c σ_s, in units of σ_s, and g the change of T with the
    limit, from limits σ_s further out and further in. So z_i - T is the influence of unit i on T,
    to first order, and t-tests and intervals of z account for limits that depend on the sample;
    those of the values that remain do not. Values of a set without a unit count as known.

    Args:
        values: One or more values x of each unit, ``float64[r, n]``.
        copies: The values y that outliers are found by, ``float64[k, n]``.
        sets: The set of each copy; it holds the copies of all units.
        deviations: c.

    Returns:
        ``float64[r, n]``; NaN if no unit is kept.

    >>> x = np.array([[1.0, 2.0, 3.0, 9.0]])
    >>> linearise_means(x, x, [x[0]], 3.0).round(9).tolist()  # without outliers near
    [[1.0, 2.0, 3.0, 9.0]]
    >>> linearise_means(x, x, [x[0]], 1.5).mean().round(9)  # (1 + 2 + 3) / 3
    np.float64(2.0)

    Source:
        Hampel, "The influence curve and its role in robust estimation", JASA 1974.
    """
    centres = np.array([members.mean() for members in sets])[:, None]
    spreads = np.array([members.std() for members in sets])[:, None]
    slack = 1e-12 * np.array([np.abs(members).max() for members in sets])[:, None]

    def keep(reach: FloatArray) -> BoolArray:
        low, high = centres - reach[:, :1] * spreads, centres + reach[:, 1:] * spreads
        return np.asarray(((copies >= low - slack) & (copies <= high + slack)).all(axis=0))

    reach = np.full((len(sets), 2), float(deviations))
    is_kept = keep(reach)
    if not is_kept.any():
        return np.full(values.shape, np.nan)
    means = values[:, is_kept].mean(axis=1, keepdims=True)
    parts = np.where(is_kept, values - means, 0.0) / is_kept.mean()
    for row, end in np.ndindex(reach.shape):
        step = np.zeros_like(reach)
        step[row, end] = 1.0
        inner, outer = keep(reach - step), keep(reach + step)
        if spreads[row, 0] > 0 and inner.any():
            change = values[:, outer].mean(axis=1) - values[:, inner].mean(axis=1)
            u = (copies[row] - centres[row]) / spreads[row]
            influence = (2 * end - 1) * u + deviations * (u**2 - 1) / 2
            share = copies.shape[1] / sets[row].size
            parts += share / 2 * np.outer(change, influence - influence.mean())
    return np.asarray(means + parts)
