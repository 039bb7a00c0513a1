"""Lists of the best items of each query, without those of its history.

From blocks of scores, from products of matrices, or from scores that are the same for all users.
An interrupted stage does not rank the lists again that it had.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from recbias.core.context import Checkpoints, get_context, report_progress, warn
from recbias.core.dataset import AnyArray, BoolArray, Codes, Matrix, Queries, TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.evidence import RankedLists
from recbias.kernels.sparse import MEMORY_LIMIT, block_size, for_each_block
from recbias.kernels.topk import BestColumns, ProductRanking, can_compile, sparse_is_faster, top_k

_SILENT_SECONDS = 2.0
"""The time after which the progress is reported."""


class PartialLists:
    """The lists of the first of n rows, to which those of the next rows are added.

    Where they are the answer of a stage, the checkpoints of the stage hold them: those that an
    interrupted run had are there from the beginning. Lists that validate a training have none.

    Args:
        n: Number of rows.
        k: Number of columns of each.

    >>> lists = PartialLists(3, 1)
    >>> lists.add(np.array([[7], [5]], dtype=np.int32), np.ones((2, 1), dtype=np.float32))
    >>> lists.n_completed, lists.items.tolist()
    (2, [[7], [5], [-1]])
    """

    def __init__(self, n: int, k: int) -> None:
        self.items: Codes = np.full((n, k), -1, dtype=np.int32)
        self.scores = np.full((n, k), np.nan, dtype=np.float32)
        self.n_completed = 0
        self._began = time.monotonic()
        self._checkpoints = Checkpoints.current() if get_context().writes_lists else None
        stored = None if self._checkpoints is None else self._checkpoints.load()
        if stored is not None and {"items", "scores"} <= stored.keys():
            self._resume(stored["items"], stored["scores"])

    def add(self, items: Codes, scores: AnyArray) -> None:
        """Add the columns and scores of the next rows, ``(b, k)`` each."""
        self._fill(items, scores)
        if self._checkpoints is None:
            return
        n_completed = self.n_completed
        self._checkpoints.save_if_due(
            lambda: {"items": self.items[:n_completed], "scores": self.scores[:n_completed]}
        )
        if time.monotonic() - self._began > _SILENT_SECONDS:
            report_progress("queries ranked", n_completed, len(self.items))

    def _resume(self, items: Codes, scores: AnyArray) -> None:
        """Take the lists of an interrupted run, unless they are not of this shape and type."""
        n_stored = min((*items.shape[:1], len(self.items)))
        if all(
            stored.dtype == array.dtype and stored.shape == array[:n_stored].shape
            for stored, array in ((items, self.items), (scores, self.scores))
        ):
            self._fill(items, scores)
        else:
            warn("the checkpoint holds other lists than these; all queries are ranked again")

    def _fill(self, items: Codes, scores: AnyArray) -> None:
        rows = slice(self.n_completed, self.n_completed + len(items))
        self.items[rows], self.scores[rows] = items, scores
        self.n_completed = rows.stop


def _rank_in_blocks(
    rank_block: Callable[[int, int], tuple[Codes, AnyArray]], n: int, size: int, k: int
) -> RankedLists:
    """Return the lists of n rows, ranked in blocks of ``size`` by several threads.

    Args:
        rank_block: Takes the first and the end of some rows; returns their columns and scores,
            ``(b, k)`` each. A block must not depend on the result of another one.
        n: Number of rows.
        size: Number of rows of a block.
        k: List length.
    """
    lists = PartialLists(n, k)
    for_each_block(rank_block, n, size, lambda best: lists.add(*best), first=lists.n_completed)
    return RankedLists(lists.items, lists.scores)


_ScoreTile: TypeAlias = Callable[[AnyArray, int, int], AnyArray]
"""Takes rows, and the first and the end of some items; returns their scores, ``(b, n)``."""

BYTES_PER_SCORE = 20
"""Maximum memory per score while its block is ranked: the score, its copies and masks."""

RANKING_LIMIT = 2 * MEMORY_LIMIT
"""Bytes that all blocks together may use; matrix products need about a hundred rows to be fast."""

TILE_ROWS, TILE_ITEMS = 128, 2048
"""Rows and items of a tile, whose scores have 1 MB."""


def rank_by_scores(
    score_block: Callable[[Codes], AnyArray],
    queries: Queries,
    k: int,
    data: TrainingData,
    *,
    memory_limit: int = RANKING_LIMIT,
    score_tile: _ScoreTile | None = None,
) -> RankedLists:
    """Return the ``k`` best candidates of each user who has a training history.

    All other queries have an empty list, and a warning reports their number.

    Args:
        score_block: Takes user codes, ``int32[b]``, and returns their scores of all items,
            ``(b, n_items)``, as a new array, which is overwritten. Items scored NaN or -inf are
            excluded. Several threads call the function at once.
        queries: The users.
        k: List length.
        data: The training items of a user are excluded, and items without training rows.
        memory_limit: Bytes that the blocks may use.
        score_tile: As ``score_block`` for the items from a first one to before a last one, for
            ranking in parts that fit the cache.

    Raises:
        BrokenContract: The scores do not have one row per user and one column per item.
    """

    def rank(users: Codes) -> RankedLists:
        if score_tile is not None and can_compile(float(users.size) * data.train.n_items):
            return rank_tiles(lambda rows, *items: score_tile(users[rows], *items), users, k, data)
        return rank_rows(
            lambda rows: score_block(users[rows]), users, k, data, memory_limit=memory_limit
        )

    return rank_users_with_history(rank, queries, k, data)


def rank_users_with_history(
    rank: Callable[[Codes], RankedLists], queries: Queries, k: int, data: TrainingData
) -> RankedLists:
    """Rank for the users who have a training history; all other queries have an empty list.

    ``rank`` takes user codes, ``int32[b]``, and returns their lists, ``(b, k)``. A warning reports
    the number of empty lists.
    """
    counts = np.append(data.train.user_counts(), 0)  # code -1 reads the last entry
    rows = np.flatnonzero(counts[queries.users] > 0)
    lists = rank(queries.users[rows])
    n_empty = len(queries) - rows.size
    if not n_empty:
        return lists
    warn(f"{n_empty:,} of {len(queries):,} queries have no training history: empty lists")
    items = np.full((len(queries), k), -1, dtype=np.int32)
    scores = np.full((len(queries), k), np.nan, dtype=np.float32)
    items[rows], scores[rows] = lists.items, lists.scores
    return RankedLists(items, scores)


def rank_rows(
    score_rows: Callable[[AnyArray], AnyArray],
    users: Codes,
    k: int,
    data: TrainingData,
    *,
    memory_limit: int = RANKING_LIMIT,
    candidates: BoolArray | None = None,
) -> RankedLists:
    """Return the ``k`` best candidates of each row, with or without a training history.

    Args:
        score_rows: As ``score_block`` of ``rank_by_scores``, but takes positions in ``users``.
        users: The user code of each row, whose training items are excluded; -1 for no user.
        k: List length.
        data: The training data.
        memory_limit: Bytes that the blocks may use.
        candidates: The items that may be recommended, ``bool[n_items]``; None for the data's own.

    Raises:
        BrokenContract: The scores do not have one row per user and one column per item.
    """
    size = block_size(BYTES_PER_SCORE * data.train.n_items, memory_limit=memory_limit)
    excluded = np.flatnonzero(~(data.candidates if candidates is None else candidates))
    matrix = data.train.binary  # computed once here, before several threads use it
    is_compiled = can_compile(float(users.size) * data.train.n_items)

    def rank_block(start: int, stop: int) -> tuple[Codes, AnyArray]:
        scores = score_rows(np.arange(start, stop))
        validate_shape(scores.shape, (stop - start, data.train.n_items))
        block = np.require(scores, dtype=np.float32, requirements=["C", "W"])
        if is_compiled:
            best = BestColumns(k, excluded, _select_history(matrix, users[start:stop]))
            best.add(block, 0)
            return best.columns, best.values
        block[:, excluded] = -np.inf
        block[find_history_cells(matrix, users[start:stop])] = -np.inf
        return top_k(block, k)

    return _rank_in_blocks(rank_block, users.size, size, k)


def rank_tiles(score_tile: _ScoreTile, users: Codes, k: int, data: TrainingData) -> RankedLists:
    """Return the lists of ``rank_rows`` by compiled loops, in tiles that fit the cache.

    Args:
        score_tile: Takes positions in ``users``, and the first and the end of some items; returns
            their scores, ``(b, n)``, as a new array, which is overwritten.
        users: The user code of each row, whose training items are excluded; -1 for no user.
        k: List length.
        data: The training data.
    """
    excluded, matrix = np.flatnonzero(~data.candidates), data.train.binary
    n_items = data.train.n_items

    def rank_block(start: int, stop: int) -> tuple[Codes, AnyArray]:
        rows = np.arange(start, stop)
        best = BestColumns(k, excluded, _select_history(matrix, users[start:stop]))
        for first in range(0, n_items, TILE_ITEMS):
            last = min(first + TILE_ITEMS, n_items)
            scores = score_tile(rows, first, last)
            validate_shape(scores.shape, (rows.size, last - first))
            best.add(np.require(scores, dtype=np.float32, requirements=["C", "W"]), first)
        return best.columns, best.values

    return _rank_in_blocks(rank_block, users.size, TILE_ROWS, k)


def find_history_cells(matrix: Matrix, users: Codes) -> tuple[AnyArray, AnyArray]:
    """Return the row and item of each cell of a block that is a training item of its user.

    ``matrix`` has the training rows, CSR ``(n_users, n_items)``; the user code of a row of the
    block is -1 for no user.
    """
    history = _select_history(matrix, users)
    return np.repeat(np.arange(users.size), np.diff(history.indptr)), history.indices


def _select_history(matrix: Matrix, users: Codes) -> Matrix:
    """Return the rows of the users, CSR ``(b, n_items)``; those of code -1 are empty."""
    if (users >= 0).all():
        return matrix[users]
    from scipy.sparse import csr_array

    rows = matrix[np.maximum(users, 0)]
    counts = np.where(users >= 0, np.diff(rows.indptr), 0)
    retained = np.repeat(users >= 0, np.diff(rows.indptr))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((rows.data[retained], rows.indices[retained], indptr), shape=rows.shape)


def validate_shape(shape: Sequence[int], expected: tuple[int, int]) -> None:
    """Raise BrokenContract if the scores of a block do not have the expected shape."""
    if tuple(shape) != expected:
        problem = f"scores have shape {tuple(shape)}, expected {expected}"
        raise BrokenContract(problem, remedy="return one row per user and one column per item")


DENSE_LIMIT = 2**28
"""Maximum size in bytes of a sparse matrix that is converted to dense for faster products."""


def rank_by_product(
    left: Matrix, right: Matrix | AnyArray, queries: Queries, k: int, data: TrainingData
) -> RankedLists:
    """Return the lists of the scores ``left[user] @ right``.

    A user's scores are summed row by row of ``right``, so they do not depend on other users.

    Args:
        left: CSR ``(n_users, m)``.
        right: CSR or dense ``(m, n_items)``.
        queries: The users.
        k: List length.
        data: The training data.
    """
    if not isinstance(right, np.ndarray):
        is_small = right.shape[0] * right.shape[1] * 4 <= DENSE_LIMIT
        right = right.toarray() if is_small and not sparse_is_faster(left, right) else right

    if can_compile(float(len(queries)) * data.train.n_items):
        return _rank_compiled_product(left, right, queries, k, data)

    def score_block(users: Codes) -> AnyArray:
        scores = left[users] @ right
        return scores if isinstance(scores, np.ndarray) else np.asarray(scores.toarray())

    return rank_by_scores(score_block, queries, k, data)


def _rank_compiled_product(
    left: Matrix, right: Matrix | AnyArray, queries: Queries, k: int, data: TrainingData
) -> RankedLists:
    """Return the lists of ``rank_by_product`` by compiled loops."""
    matrix, ranking = data.train.binary, ProductRanking(left, right, data.candidates)

    def rank(users: Codes) -> RankedLists:
        def rank_block(start: int, stop: int) -> tuple[Codes, AnyArray]:
            rows = users[start:stop]
            return ranking.rank(rows, _select_history(matrix, rows), k)

        return _rank_in_blocks(rank_block, users.size, TILE_ROWS, k)

    return rank_users_with_history(rank, queries, k, data)


_SAME_ROWS = 512
"""Rows with the same scores that are ranked at once."""


def rank_by_same_scores(scores: AnyArray, users: Codes, k: int, data: TrainingData) -> RankedLists:
    """Return the lists of ``rank_rows`` for scores that are the same in every row.

    The k best items that are not among the n items of a history are among the k + n best of all.

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

    def rank_block(start: int, stop: int) -> tuple[Codes, AnyArray]:
        history = _select_history(matrix, users[start:stop])
        top = _select_unseen(ranks, history, k, int(np.diff(history.indptr).max(initial=0)))
        items = np.append(best, np.int32(-1))[np.minimum(top, best.size)]
        return items, np.where(items >= 0, np.append(scores, np.nan)[items], np.nan)

    return _rank_in_blocks(rank_block, users.size, _SAME_ROWS, k)


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
