"""The k largest of each row, in one stated order: by falling score, ties by ascending column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Codes

Floats32 = npt.NDArray[np.float32]


def top_k(scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Return the columns and scores of the ``k`` largest scores of each row, best first.

    Scores are compared as ``float32``; ties go to the lower column. A score of -inf or NaN is
    nobody's: a row with fewer than ``k`` others is padded with column -1 and score NaN.

    Args:
        scores: ``(b, n)``; not changed.
        k: How many to keep; more than ``n`` are padded.

    Returns:
        Columns ``int32[b, k]`` and scores ``float32[b, k]``.

    >>> columns, best = top_k(np.array([[1.0, 3.0, 3.0, -np.inf]]), 4)
    >>> columns.tolist(), best.tolist()
    ([[1, 2, 0, -1]], [[3.0, 3.0, 1.0, nan]])
    """
    scores = np.ascontiguousarray(scores, dtype=np.float32)
    columns = np.full((scores.shape[0], k), -1, dtype=np.int32)
    best = np.full((scores.shape[0], k), np.nan, dtype=np.float32)
    rows, found = np.nonzero(top_k_mask(scores, k))
    values = scores[rows, found]
    order = np.lexsort((-values, rows))
    starts = np.searchsorted(rows, np.arange(scores.shape[0]))
    places = np.arange(rows.size) - starts[rows]
    columns[rows, places] = found[order]
    best[rows, places] = values[order]
    return columns, best


def top_k_mask(scores: AnyArray, k: int) -> BoolArray:
    """Mark the ``k`` largest scores of each row; of equal scores the lower columns are marked.

    Args:
        scores: ``float32 (b, n)``; -inf and NaN are never marked.
        k: How many to mark; a row with fewer scores has all of them marked.

    Returns:
        ``bool (b, n)``.
    """
    if scores.size == 0 or k < 1:
        return np.zeros(scores.shape, dtype=bool)
    if np.isnan(scores.max()):
        scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    if k >= scores.shape[1]:
        return scores > -np.inf
    place = scores.shape[1] - k
    kth = np.partition(scores, place, axis=1)[:, place]
    least = np.maximum(kth, np.finfo(np.float32).min)[:, None]
    marked: BoolArray = scores >= least
    many = np.flatnonzero(np.count_nonzero(marked, axis=1) > k)
    if many.size:
        marked[many] = _first_of_equals(scores[many], least[many], k)
    return marked


def _first_of_equals(scores: AnyArray, least: AnyArray, k: int) -> BoolArray:
    """Mark the scores above ``least``, and of those equal to it as many as make ``k``."""
    above = scores > least
    equal = scores == least
    wanted = k - np.count_nonzero(above, axis=1)
    marked: BoolArray = above | (equal & (np.cumsum(equal, axis=1) <= wanted[:, None]))
    return marked
