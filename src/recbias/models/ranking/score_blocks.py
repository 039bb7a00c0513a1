"""Ranking of scores in blocks of queries: items of the history are excluded, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.models.ranking.partial_lists import rank_in_blocks
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size
from recbias.numerics.sparse.compiled_ranking import BestColumns, can_compile
from recbias.numerics.sparse.topk import top_k

ScoreTile: TypeAlias = Callable[[AnyArray, int, int], AnyArray]
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
    score_tile: ScoreTile | None = None,
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
            best = BestColumns(k, excluded, select_history(matrix, users[start:stop]))
            best.add(block, 0)
            return best.columns, best.values
        block[:, excluded] = -np.inf
        block[find_history_cells(matrix, users[start:stop])] = -np.inf
        return top_k(block, k)

    return rank_in_blocks(rank_block, users.size, size, k)


def rank_tiles(score_tile: ScoreTile, users: Codes, k: int, data: TrainingData) -> RankedLists:
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
        best = BestColumns(k, excluded, select_history(matrix, users[start:stop]))
        for first in range(0, n_items, TILE_ITEMS):
            last = min(first + TILE_ITEMS, n_items)
            scores = score_tile(rows, first, last)
            validate_shape(scores.shape, (rows.size, last - first))
            best.add(np.require(scores, dtype=np.float32, requirements=["C", "W"]), first)
        return best.columns, best.values

    return rank_in_blocks(rank_block, users.size, TILE_ROWS, k)


def find_history_cells(matrix: Matrix, users: Codes) -> tuple[AnyArray, AnyArray]:
    """Return the row and item of each cell of a block that is a training item of its user.

    ``matrix`` has the training rows, CSR ``(n_users, n_items)``; the user code of a row of the
    block is -1 for no user.
    """
    history = select_history(matrix, users)
    return np.repeat(np.arange(users.size), np.diff(history.indptr)), history.indices


def select_history(matrix: Matrix, users: Codes) -> Matrix:
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
