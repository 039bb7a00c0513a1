"""Lists of scores that are the same for all users: only the history differs."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, Codes, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.models.ranking.score_blocks import select_history

MAX_CELLS = 2**23
"""The number of users of a block times the number of items that are looked at for each."""


def rank_by_same_scores(scores: AnyArray, users: Codes, k: int, data: TrainingData) -> RankedLists:
    """Return the lists of ``rank_rows`` for scores that are the same in every row.

    The k best items that are not among the n items of a history are among the k + n best of all.
    Rows with histories of similar length are ranked at once.

    Args:
        scores: The score of each item, ``float32[n_items]``, finite.
        users: The user code of each row, whose training items are excluded; -1 for no user.
        k: List length.
        data: The training data.
    """
    candidates = np.flatnonzero(data.candidates)
    best = candidates[np.argsort(-scores[candidates], kind="stable")].astype(np.int32)
    ranks = np.full(data.train.n_items, best.size, dtype=np.int32)
    ranks[best] = np.arange(best.size, dtype=np.int32)
    matrix = data.train.binary
    lengths = np.append(np.diff(matrix.indptr), 0)[users]  # code -1 reads the last entry
    order = np.argsort(lengths, kind="stable")
    items = np.full((users.size, k), -1, dtype=np.int32)
    start = 0
    while start < users.size:
        stop = _find_end(lengths[order], start, k)
        rows = order[start:stop]
        n_seen = int(lengths[rows[-1]])
        top = _select_unseen(ranks, select_history(matrix, users[rows]), k, n_seen)
        is_listed = (top >= 0) & (top < best.size)
        items[rows] = np.where(is_listed, np.append(best, -1)[top * is_listed], -1)
        start = stop
    values = np.where(items >= 0, np.append(scores, np.nan)[items], np.nan)
    return RankedLists(items, values.astype(np.float32))


def _find_end(lengths: AnyArray, start: int, k: int) -> int:
    """Return the end of a block from ``start`` on; the lengths of histories ascend."""
    stop = min(start + max(1, MAX_CELLS // (k + int(lengths[start]) + 1)), lengths.size)
    while stop - start > 1 and (stop - start) * (k + int(lengths[stop - 1])) > 2 * MAX_CELLS:
        stop = (start + stop) // 2
    return stop


def _select_unseen(ranks: AnyArray, history: Matrix, k: int, n_seen: int) -> AnyArray:
    """Return the ``k`` lowest ranks from 0 on that no item of the history of a row has."""
    shape = (history.shape[0], k + n_seen)
    is_free = np.ones(shape, dtype=bool)
    seen_ranks = ranks[history.indices]
    rows = np.repeat(np.arange(shape[0]), np.diff(history.indptr))
    is_near = seen_ranks < shape[1]
    is_free[rows[is_near], seen_ranks[is_near]] = False
    is_selected = is_free & (np.cumsum(is_free, axis=1, dtype=np.int32) <= k)
    return np.nonzero(is_selected)[1].reshape(shape[0], k)
