"""The k largest of each row, in one stated order: by falling score, ties by ascending column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Codes

Floats32 = npt.NDArray[np.float32]

_MOST_CANDIDATES = 4
"""A row with more candidates than this many times k (it is full of ties) is cut at once."""


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
    columns, values = largest(scores, k)
    order = np.argsort(-values, axis=1, kind="stable")  # NaN goes last
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)


def largest(scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Return what ``top_k`` does, but in ascending order of columns, which is faster.

    >>> columns, best = largest(np.array([[1.0, 3.0, 4.0]]), 2)
    >>> columns.tolist(), best.tolist()
    ([[1, 2]], [[3.0, 4.0]])
    """
    scores = np.asarray(scores, dtype=np.float32)
    if scores.size and np.isnan(scores.max()):
        scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    columns, few = _packed(_candidates(scores, k), scores, k)
    if few.shape[1] == k:
        return columns, few
    kept = _first_k(np.where(columns < 0, np.float32(-np.inf), few), k)
    places, values = _packed(kept, few, k)
    found = np.take_along_axis(columns, np.maximum(places, 0), 1)
    return np.where(places < 0, np.int32(-1), found), values


def _candidates(scores: AnyArray, k: int) -> BoolArray:
    """Mark the ``k`` largest of each row, and perhaps a few more where that is faster.

    The k-th largest of the maxima of groups of columns is not above the k-th largest score, and
    the maxima cost less than to partition all columns.
    """
    n = scores.shape[1]
    width = min(n // (8 * k), 32)
    if width < 2:
        return _first_k(scores, k)
    groups = scores[:, : n // width * width].reshape(len(scores), width, -1)
    marked = _at_least(scores, _kth(groups.max(axis=1), k))
    many = np.flatnonzero(np.count_nonzero(marked, axis=1) > _MOST_CANDIDATES * k)
    if many.size:
        marked[many] = _first_k(scores[many], k)
    return marked


def _first_k(scores: AnyArray, k: int) -> BoolArray:
    """Mark the ``k`` largest of each row; of equal scores the lower columns."""
    kth = _kth(scores, k)
    marked = _at_least(scores, kth)
    tied = np.flatnonzero(np.count_nonzero(marked, axis=1) > k)
    if tied.size:
        rows, least = scores[tied], kth[tied, None]
        above, equal = rows > least, rows == least
        wanted = k - np.count_nonzero(above, axis=1)
        marked[tied] = above | (equal & (np.cumsum(equal, axis=1) <= wanted[:, None]))
    return marked


def _kth(scores: AnyArray, k: int) -> AnyArray:
    """Return the ``k``-th largest score of each row, -inf in rows of fewer."""
    place = scores.shape[1] - k
    if place < 0:
        return np.full(len(scores), -np.inf, dtype=scores.dtype)
    kth: AnyArray = np.partition(scores, place, axis=1)[:, place]
    return kth


def _at_least(scores: AnyArray, least: AnyArray) -> BoolArray:
    marked: BoolArray = scores >= np.maximum(least, np.finfo(scores.dtype).min)[:, None]
    return marked


def _packed(marked: BoolArray, scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Move the marked scores to the left; at least ``k`` places, empty ones are -1 and NaN."""
    flat = np.flatnonzero(marked)
    rows, columns = np.divmod(flat, max(marked.shape[1], 1))
    places = np.arange(rows.size) - np.searchsorted(rows, np.arange(len(marked)))[rows]
    shape = (len(marked), max(k, int(places.max(initial=-1)) + 1))
    packed = np.full(shape, -1, dtype=np.int32)
    values = np.full(shape, np.nan, dtype=np.float32)
    packed[rows, places] = columns
    values[rows, places] = scores.ravel()[flat]
    return packed, values
