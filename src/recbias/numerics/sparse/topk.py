"""The k largest of each row, in one stated order: by falling score, ties by ascending column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Codes

Floats32 = npt.NDArray[np.float32]

_MOST_CANDIDATES = 4
"""A row with more candidates than this many times k (it is full of ties) is cut at once."""

_PIECES = 8
"""Rows whose ties cross the border are settled in so many goes, each in little memory."""


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
    kept = np.flatnonzero(_first_k(np.where(columns < 0, np.float32(-np.inf), few), k))
    places, values = _packed(kept, few, k)
    found = np.take_along_axis(columns, np.maximum(places, 0), 1)
    return np.where(places < 0, np.int32(-1), found), values


def _candidates(scores: AnyArray, k: int) -> AnyArray:
    """Return the flat places of the ``k`` largest of each row; a few more where that is faster.

    The k-th largest of the maxima of groups of columns is not above the k-th largest score, and
    the maxima cost less than to partition all columns.
    """
    n = scores.shape[1]
    width = min(n // (8 * k), 32)
    if width < 2:
        return np.flatnonzero(_first_k(scores, k))
    groups = scores[:, : n // width * width].reshape(len(scores), width, -1)
    marked = _at_least(scores, _kth(groups.max(axis=1), k))
    most = _MOST_CANDIDATES * k
    few = np.count_nonzero(marked) <= most * len(marked)  # else their places take much memory
    flat = np.flatnonzero(marked) if few else np.arange(0)
    counts = np.diff(_bounds(flat, scores)) if few else np.count_nonzero(marked, axis=1)
    many = np.flatnonzero(counts > most)
    if not many.size:
        return flat
    marked[many] = _first_k(scores[many], k)
    return np.flatnonzero(marked)


def _bounds(flat: AnyArray, scores: AnyArray) -> AnyArray:
    """Return where the places of each row start in ``flat``, and where the last row's end."""
    bounds: AnyArray = np.searchsorted(flat, np.arange(len(scores) + 1) * scores.shape[1])
    return bounds


def _first_k(scores: AnyArray, k: int) -> BoolArray:
    """Mark the ``k`` largest of each row; of equal scores the lower columns."""
    kth = _kth(scores, k)
    marked = _at_least(scores, kth)
    tied = np.flatnonzero(np.count_nonzero(marked, axis=1) > k)
    for some in np.array_split(tied, min(tied.size, _PIECES) or 1):
        rows, least = scores[some], kth[some, None]
        above, equal = rows > least, rows == least
        wanted = k - np.count_nonzero(above, axis=1)
        places = np.cumsum(equal, axis=1, dtype=np.int32)
        marked[some] = above | (equal & (places <= wanted[:, None]))
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


def _packed(flat: AnyArray, scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Move the scores at flat places to the left; at least ``k`` each, empty ones -1 and NaN."""
    starts = _bounds(flat, scores)
    counts = np.diff(starts)
    rows = np.repeat(np.arange(len(scores)), counts)
    places = np.arange(flat.size) - starts[rows]
    shape = (len(scores), max(k, int(counts.max(initial=0))))
    packed = np.full(shape, -1, dtype=np.int32)
    values = np.full(shape, np.nan, dtype=np.float32)
    packed[rows, places] = flat - rows * scores.shape[1]
    values[rows, places] = scores.ravel()[flat]
    return packed, values
