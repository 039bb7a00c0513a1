"""Measures of inequality of counts: Gini index, Shannon entropy, and the popularity head."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray


def gini(counts: npt.ArrayLike) -> FloatArray:
    """Return the Gini index: 0 if all counts are equal, near 1 if one count has the total.

        G = Σ_i (2 i - n - 1) x_i / (n Σ_i x_i),    x sorted ascending, i from 1

    The maximum, (n - 1) / n, is reached if only one of n counts is above 0. NaN where all counts
    ``(..., n)``, which must not be negative, are 0.

    >>> float(gini([1, 1, 1])), float(gini([0, 0, 0, 8]))
    (0.0, 0.75)

    Source:
        Gini, "Variabilità e mutabilità", 1912; in this form in Sen, "On Economic Inequality",
        1973, p. 31.
    """
    ordered = _sort_ascending(np.asarray(counts))
    n = ordered.shape[-1]
    weights = 2.0 * np.arange(1, n + 1) - n - 1
    return _divide(ordered @ weights, n * ordered.sum(axis=-1))


def entropy(counts: npt.ArrayLike) -> FloatArray:
    """Return the Shannon entropy of the shares of the counts, in nats.

        H = -Σ_i p_i ln p_i,    p_i = x_i / Σ_j x_j,    0 ln 0 = 0

    It is 0 if only one count is above 0, and ln n if n counts are equal. Divide by ln 2 for bits.
    NaN where all counts ``(..., n)``, which must not be negative, are 0.

    >>> bool(np.isclose(entropy([3, 3]), np.log(2)))
    True

    Source:
        Shannon, "A Mathematical Theory of Communication", 1948, section 6.
    """
    values = np.asarray(counts, dtype=np.float64)
    shares = _divide(values, values.sum(axis=-1, keepdims=True))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.abs(-(shares * logs).sum(axis=-1)))  # abs turns -0.0 into 0.0


def head(
    counts: AnyArray, share: float, *, of: Literal["interactions", "items"] = "interactions"
) -> BoolArray:
    """Mark the head: the smallest set of most popular items that reaches a share, ``bool[n]``.

    The share is of all interactions or of the number of items. Ties in ``counts`` go to the lower
    code; the remaining items are the long tail.

    >>> head(np.array([1, 5, 4]), 0.6).tolist()
    [False, True, True]
    >>> head(np.array([1, 5, 4]), 0.3, of="items").tolist()
    [False, True, False]
    """
    counts = np.asarray(counts)
    order = np.argsort(-counts, kind="stable")
    totals = np.cumsum(counts[order]) if of == "interactions" else np.arange(1, counts.size + 1)
    target = share * totals[-1] if totals.size else 0.0
    is_head = np.zeros(counts.size, dtype=bool)
    if target > 0:
        n_head = np.searchsorted(totals, target - 1e-9 * max(target, 1.0)) + 1
        is_head[order[:n_head]] = True
    return is_head


def _sort_ascending(values: AnyArray) -> FloatArray:
    """Return the values sorted along the last axis; small whole numbers by radix sort."""
    if values.dtype.kind in "iu" and values.size and values.min() >= 0:
        largest = values.max()
        if largest < 2**15:
            ordered = np.sort(values.astype(np.int16), axis=-1, kind="stable")
            return ordered.astype(np.float64)
        values = values.astype(np.int32) if largest < 2**31 else values
    return np.sort(values, axis=-1).astype(np.float64)


def _divide(numerator: AnyArray, divisor: AnyArray) -> FloatArray:
    """Return the quotient, NaN where the divisor is 0."""
    numerator, divisor = np.broadcast_arrays(np.asarray(numerator), np.asarray(divisor))
    undefined = np.full(numerator.shape, np.nan)
    return np.asarray(np.divide(numerator, divisor, out=undefined, where=divisor != 0))
