"""From scores to lists: in blocks of queries, without what a user has, best first."""

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
from recbias.numerics.sparse.products import sparse_is_faster
from recbias.numerics.sparse.topk import top_k

BYTES_A_SCORE = 20
"""Memory a score takes at most while its block is ranked: itself, its copies and masks."""

RANKING_LIMIT = 2 * MEMORY_LIMIT
"""Bytes that the blocks may take together: products of a hundred rows and more are fast."""

DENSE_LIMIT = 2**28
"""Bytes that a sparse matrix may take when it is made dense because products are faster then."""


def rank_by_scores(
    score_block: Callable[[Codes], AnyArray],
    queries: Queries,
    k: int,
    data: TrainingData,
    *,
    memory_limit: int = RANKING_LIMIT,
) -> RankedLists:
    """Return the ``k`` best-scored candidates of each user who has a training history.

    A query that is no user of the training data, and a user without a training item, have an
    empty list: there is nothing to say of them. How many there were is noted as a warning.

    Args:
        score_block: Takes user codes, ``int32[b]``, and returns their scores of all items,
            ``(b, n_items)``, as a fresh array: it is overwritten. NaN and -inf are never listed.
            A pure function; several threads call it at once.
        queries: Who is asked.
        k: List length.
        data: Its training rows are left out of a user's list, and so are items without one.
        memory_limit: Bytes that the blocks may take.

    Raises:
        BrokenContract: The scores do not have one row a user and one column an item.
    """
    return rank_known(
        lambda users: rank_rows(
            lambda rows: score_block(users[rows]), users, k, data, memory_limit=memory_limit
        ),
        queries,
        k,
        data,
    )


def rank_known(
    rank: Callable[[Codes], RankedLists], queries: Queries, k: int, data: TrainingData
) -> RankedLists:
    """Return the lists of the users who have a training history, empty ones of all others.

    How many others there were is noted as a warning.

    Args:
        rank: Takes user codes, ``int32[b]``, and returns their lists, ``(b, k)``.
        queries: Who is asked.
        k: List length.
        data: The training data.
    """
    known = np.flatnonzero(_has_history(queries.users, data))
    lists = rank(queries.users[known])
    unknown = len(queries) - known.size
    if not unknown:
        return lists
    warn(f"{unknown:,} of {len(queries):,} queries have no training history: empty lists")
    items = np.full((len(queries), k), -1, dtype=np.int32)
    scores = np.full((len(queries), k), np.nan, dtype=np.float32)
    items[known], scores[known] = lists.items, lists.scores
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
    """Return the ``k`` best-scored candidates of each row, whoever it is.

    Args:
        score_rows: As ``score_block`` of ``rank_by_scores``, but takes positions in ``users``.
        users: The user code of each row, whose training items are left out; -1 has none.
        k: List length.
        data: The training data.
        memory_limit: Bytes that the blocks may take.
        candidates: The items that may be listed, ``bool[n_items]``; those of ``data`` where None.

    Raises:
        BrokenContract: The scores do not have one row a user and one column an item.
    """
    size = block_size(BYTES_A_SCORE * data.train.n_items, memory_limit=memory_limit)
    excluded = np.flatnonzero(~(data.candidates if candidates is None else candidates))
    matrix = data.train.binary  # made here, before the threads ask for it

    def ranked(start: int, stop: int) -> tuple[Codes, AnyArray]:
        block = _writable(score_rows(np.arange(start, stop)), (stop - start, data.train.n_items))
        block[:, excluded] = -np.inf
        block[own_cells(matrix, users[start:stop])] = -np.inf
        return top_k(block, k)

    empty = (np.empty((0, k), dtype=np.int32), np.empty((0, k), dtype=np.float32))
    blocks = [empty, *map_blocks(ranked, users.size, size)]
    items, scores = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return RankedLists(items, scores)


def _has_history(users: Codes, data: TrainingData) -> AnyArray:
    counts = np.append(data.train.user_counts(), 0)  # code -1 reads the last
    return counts[users] > 0


def own_cells(matrix: Matrix, users: Codes) -> tuple[AnyArray, AnyArray]:
    """Return the rows and items of the cells of a block that are its users' training items.

    Args:
        matrix: The training rows, CSR ``(n_users, n_items)``.
        users: The user code of each row of the block; -1 has no item.
    """
    rows = np.flatnonzero(users >= 0)
    own = matrix[users[rows]]
    return np.repeat(rows, np.diff(own.indptr)), own.indices


def check_shape(found: Sequence[int], asked: tuple[int, int]) -> None:
    """Raise BrokenContract where a block's scores do not have the shape that was asked for."""
    if tuple(found) != asked:
        problem = f"scores have shape {tuple(found)} where {asked} was asked for"
        raise BrokenContract(problem, remedy="return one row a user and one column an item")


def _writable(block: AnyArray, shape: tuple[int, int]) -> AnyArray:
    check_shape(block.shape, shape)
    return np.require(block, dtype=np.float32, requirements=["C", "W"])


def rank_by_product(
    left: Matrix, right: Matrix | AnyArray, queries: Queries, k: int, data: TrainingData
) -> RankedLists:
    """Return the lists of the scores ``left[user] @ right``.

    A user's scores are added up row by row of ``right``, so they hang on no other user's.

    Args:
        left: CSR ``(n_users, m)``.
        right: CSR or dense ``(m, n_items)``.
        queries: Who is asked.
        k: List length.
        data: The training data.
    """
    if not isinstance(right, np.ndarray):
        small = right.shape[0] * right.shape[1] * 4 <= DENSE_LIMIT
        right = right.toarray() if small and not sparse_is_faster(left, right) else right

    def score_block(users: Codes) -> AnyArray:
        scores = left[users] @ right
        dense: AnyArray = scores if isinstance(scores, np.ndarray) else scores.toarray()
        return dense

    return rank_by_scores(score_block, queries, k, data)
