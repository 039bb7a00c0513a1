"""Ranking of scores in blocks of queries: items of the history are excluded, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.numerics.sparse.blocks import MEMORY_LIMIT, block_size, map_blocks
from recbias.numerics.sparse.compiled_ranking import can_compile, multiply_rows, rank_scores
from recbias.numerics.sparse.products import sparse_is_faster
from recbias.numerics.sparse.topk import top_k

BYTES_PER_SCORE = 20
"""Maximum memory per score while its block is ranked: the score, its copies and masks."""

RANKING_LIMIT = 2 * MEMORY_LIMIT
"""Bytes that all blocks together may use; matrix products need about a hundred rows to be fast."""

CACHED_LIMIT = 2**25
"""Bytes of all blocks of sparse products, whose rows are computed one by one."""

DENSE_LIMIT = 2**28
"""Maximum size in bytes of a sparse matrix that is converted to dense for faster products."""


def rank_by_scores(
    score_block: Callable[[Codes], AnyArray],
    queries: Queries,
    k: int,
    data: TrainingData,
    *,
    memory_limit: int = RANKING_LIMIT,
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

    Raises:
        BrokenContract: The scores do not have one row per user and one column per item.
    """
    return rank_users_with_history(
        lambda users: rank_rows(
            lambda rows: score_block(users[rows]), users, k, data, memory_limit=memory_limit
        ),
        queries,
        k,
        data,
    )


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
            return rank_scores(block, k, excluded, select_history(matrix, users[start:stop]))
        block[:, excluded] = -np.inf
        block[find_history_cells(matrix, users[start:stop])] = -np.inf
        return top_k(block, k)

    empty = (np.empty((0, k), dtype=np.int32), np.empty((0, k), dtype=np.float32))
    blocks = [empty, *map_blocks(rank_block, users.size, size)]
    items, scores = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
    return RankedLists(items, scores)


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
    kept = np.repeat(users >= 0, np.diff(rows.indptr))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return csr_array((rows.data[kept], rows.indices[kept], indptr), shape=rows.shape)


def validate_shape(shape: Sequence[int], expected: tuple[int, int]) -> None:
    """Raise BrokenContract if the scores of a block do not have the expected shape."""
    if tuple(shape) != expected:
        problem = f"scores have shape {tuple(shape)}, expected {expected}"
        raise BrokenContract(problem, remedy="return one row per user and one column per item")


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

    if not isinstance(right, np.ndarray) and can_compile(float(len(queries)) * data.train.n_items):
        factor = right  # narrowed for the function below
        return rank_by_scores(
            lambda users: multiply_rows(users, left, factor),
            queries,
            k,
            data,
            memory_limit=CACHED_LIMIT,
        )

    def score_block(users: Codes) -> AnyArray:
        scores = left[users] @ right
        return scores if isinstance(scores, np.ndarray) else np.asarray(scores.toarray())

    return rank_by_scores(score_block, queries, k, data)
