"""The k largest scores of each row, in descending order; ties go to the lower column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recbias.core.arrays import AnyArray, BoolArray, Codes

Floats32 = npt.NDArray[np.float32]

_MAX_CANDIDATES = 4
"""Candidates per row, in multiples of k, from which ties are resolved at once."""

_TIE_CHUNKS = 8
"""Number of chunks in which rows with ties at the k-th score are resolved, to save memory."""


def top_k(scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Return the columns and scores of the ``k`` largest scores of each row, best first.

    Scores are compared as ``float32``; ties go to the lower column. Scores of -inf and NaN are
    never selected: a row with fewer than ``k`` other scores is padded (column -1, score NaN).

    ``k`` may exceed the number of columns. The arrays are ``int32[b, k]`` and ``float32[b, k]``.

    >>> columns, best = top_k(np.array([[1.0, 3.0, 3.0, -np.inf]]), 4)
    >>> columns.tolist(), best.tolist()
    ([[1, 2, 0, -1]], [[3.0, 3.0, 1.0, nan]])
    """
    columns, values = select_largest(scores, k)
    order = np.argsort(-values, axis=1, kind="stable")  # NaN sorts last
    return np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1)


def select_largest(scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Return the result of ``top_k`` in ascending order of columns, which is faster.

    >>> columns, best = select_largest(np.array([[1.0, 3.0, 4.0]]), 2)
    >>> columns.tolist(), best.tolist()
    ([[1, 2]], [[3.0, 4.0]])
    """
    scores = np.asarray(scores, dtype=np.float32)
    if scores.size and np.isnan(scores.max()):
        scores = np.where(np.isnan(scores), np.float32(-np.inf), scores)
    columns, candidates = _pack_left(_find_candidates(scores, k), scores, k)
    if candidates.shape[1] == k:
        return columns, candidates
    selected = np.flatnonzero(
        _mark_top_k(np.where(columns < 0, np.float32(-np.inf), candidates), k)
    )
    positions, values = _pack_left(selected, candidates, k)
    top_columns = np.take_along_axis(columns, np.maximum(positions, 0), 1)
    return np.where(positions < 0, np.int32(-1), top_columns), values


def _find_candidates(scores: AnyArray, k: int) -> AnyArray:
    """Return flat positions that contain the ``k`` largest scores of each row, perhaps more.

    The k-th largest maximum of groups of columns is at most the k-th largest score, and is cheaper
    to compute than a partition of all columns.
    """
    n = scores.shape[1]
    width = min(n // (8 * k), 32)
    if width < 2:
        return np.flatnonzero(_mark_top_k(scores, k))
    groups = scores[:, : n // width * width].reshape(len(scores), width, -1)
    marked = _mark_at_least(scores, _select_kth(groups.max(axis=1), k))
    limit = _MAX_CANDIDATES * k
    is_sparse = np.count_nonzero(marked) <= limit * len(marked)  # else positions need much memory
    flat = np.flatnonzero(marked) if is_sparse else np.arange(0)
    counts = np.diff(_find_bounds(flat, scores)) if is_sparse else np.count_nonzero(marked, axis=1)
    tied = np.flatnonzero(counts > limit)
    if not tied.size:
        return flat
    marked[tied] = _mark_top_k(scores[tied], k)
    return np.flatnonzero(marked)


def _find_bounds(flat: AnyArray, scores: AnyArray) -> AnyArray:
    """Return where each row starts in ``flat``, and the end of the last row."""
    bounds: AnyArray = np.searchsorted(flat, np.arange(len(scores) + 1) * scores.shape[1])
    return bounds


def _mark_top_k(scores: AnyArray, k: int) -> BoolArray:
    """Mark the ``k`` largest scores of each row; ties go to the lower column."""
    kth = _select_kth(scores, k)
    marked = _mark_at_least(scores, kth)
    tied = np.flatnonzero(np.count_nonzero(marked, axis=1) > k)
    for chunk in np.array_split(tied, min(tied.size, _TIE_CHUNKS) or 1):
        rows, threshold = scores[chunk], kth[chunk, None]
        above, equal = rows > threshold, rows == threshold
        n_equal = k - np.count_nonzero(above, axis=1)
        order = np.cumsum(equal, axis=1, dtype=np.int32)
        marked[chunk] = above | (equal & (order <= n_equal[:, None]))
    return marked


def _select_kth(scores: AnyArray, k: int) -> AnyArray:
    """Return the ``k``-th largest score of each row, -inf if there are fewer columns."""
    position = scores.shape[1] - k
    if position < 0:
        return np.full(len(scores), -np.inf, dtype=scores.dtype)
    kth: AnyArray = np.partition(scores, position, axis=1)[:, position]
    return kth


def _mark_at_least(scores: AnyArray, thresholds: AnyArray) -> BoolArray:
    marked: BoolArray = scores >= np.maximum(thresholds, np.finfo(scores.dtype).min)[:, None]
    return marked


def _pack_left(flat: AnyArray, scores: AnyArray, k: int) -> tuple[Codes, Floats32]:
    """Move the scores at flat positions to the left of at least ``k`` columns, padded."""
    starts = _find_bounds(flat, scores)
    counts = np.diff(starts)
    rows = np.repeat(np.arange(len(scores)), counts)
    positions = np.arange(flat.size) - starts[rows]
    shape = (len(scores), max(k, int(counts.max(initial=0))))
    columns = np.full(shape, -1, dtype=np.int32)
    values = np.full(shape, np.nan, dtype=np.float32)
    columns[rows, positions] = flat - rows * scores.shape[1]
    values[rows, positions] = scores.ravel()[flat]
    return columns, values
