"""How unevenly counts are spread: Gini, Shannon entropy, and the head of a long tail."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, FloatArray


def gini(counts: npt.ArrayLike) -> FloatArray:
    """Return how unevenly counts are spread: 0 is all alike, near 1 is one that has everything.

        G = Σ_i (2 i - n - 1) x_i / (n Σ_i x_i),    x sorted ascending, i from 1

    The largest value, (n - 1) / n, is reached when one of n has everything.

    Args:
        counts: Counts or shares, not negative, ``(..., n)``.

    Returns:
        ``float64 (...)``; NaN where nothing is counted.

    >>> float(gini([1, 1, 1])), float(gini([0, 0, 0, 8]))
    (0.0, 0.75)

    Source:
        Gini, "Variabilità e mutabilità", 1912; in this form in Sen, "On Economic Inequality",
        1973, p. 31.
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64), axis=-1)
    n = ordered.shape[-1]
    weights = 2.0 * np.arange(1, n + 1) - n - 1
    return _ratio(ordered @ weights, n * ordered.sum(axis=-1))


def entropy(counts: npt.ArrayLike) -> FloatArray:
    """Return the Shannon entropy of the shares of the counts, in nats.

        H = -Σ_i p_i ln p_i,    p_i = x_i / Σ_j x_j,    0 ln 0 = 0

    It is 0 when one has everything and ln n when n have the same. Divide by ln 2 for bits.

    Args:
        counts: Counts or shares, not negative, ``(..., n)``.

    Returns:
        ``float64 (...)``; NaN where nothing is counted.

    >>> bool(np.isclose(entropy([3, 3]), np.log(2)))
    True

    Source:
        Shannon, "A Mathematical Theory of Communication", 1948, section 6.
    """
    values = np.asarray(counts, dtype=np.float64)
    shares = _ratio(values, values.sum(axis=-1, keepdims=True))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(np.abs(-(shares * logs).sum(axis=-1)))  # abs turns -0.0 into 0.0


def head(
    counts: AnyArray, share: float, *, of: Literal["interactions", "items"] = "interactions"
) -> BoolArray:
    """Mark the head: the smallest set of most popular items that holds a share.

    Args:
        counts: Interactions of each item, ``[n]``; of equal items the lower codes come first.
        share: How much the head holds, 0 to 1.
        of: What the share is of: all interactions, or the number of items.

    Returns:
        ``bool[n]``; the others are the long tail.

    >>> head(np.array([1, 5, 4]), 0.6).tolist()
    [False, True, True]
    >>> head(np.array([1, 5, 4]), 0.3, of="items").tolist()
    [False, True, False]
    """
    counts = np.asarray(counts)
    order = np.argsort(-counts, kind="stable")
    held = np.cumsum(counts[order]) if of == "interactions" else np.arange(1, counts.size + 1)
    needed = share * held[-1] if held.size else 0.0
    n_head = int(np.searchsorted(held, needed - 1e-9 * max(needed, 1.0))) + 1 if needed > 0 else 0
    marked = np.zeros(counts.size, dtype=bool)
    marked[order[:n_head]] = True
    return marked


def _ratio(above: AnyArray, below: AnyArray) -> FloatArray:
    above, below = np.broadcast_arrays(np.asarray(above), np.asarray(below))
    undefined = np.full(above.shape, np.nan)
    return np.asarray(np.divide(above, below, out=undefined, where=below != 0))
