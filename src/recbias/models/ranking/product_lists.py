"""Lists of the scores of a product of a sparse matrix with another one."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, Matrix
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.models.ranking.partial_lists import rank_in_blocks
from recbias.models.ranking.score_blocks import (
    TILE_ROWS,
    rank_by_scores,
    rank_users_with_history,
    select_history,
)
from recbias.numerics.sparse.blocks import n_workers
from recbias.numerics.sparse.compiled_ranking import can_compile
from recbias.numerics.sparse.product_ranking import DenseProductRanking, ProductRanking
from recbias.numerics.sparse.products import sparse_is_faster

MAX_DENSE_ROWS = 2**14
"""Rows that are ranked at once by a dense right factor, whose tiles are copied for each block."""

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
    """Return the lists of ``rank_by_product`` by compiled loops, in tiles that fit the cache."""
    matrix, ranking = data.train.binary, _make_ranking(left, right, data.candidates)

    def rank(users: Codes) -> RankedLists:
        def rank_block(start: int, stop: int) -> tuple[Codes, AnyArray]:
            rows = users[start:stop]
            return ranking.rank(rows, select_history(matrix, rows), k)

        share = max(TILE_ROWS, -(-users.size // n_workers()))
        size = min(MAX_DENSE_ROWS, share) if isinstance(right, np.ndarray) else TILE_ROWS
        return rank_in_blocks(rank_block, users.size, size, k)

    return rank_users_with_history(rank, queries, k, data)


def _make_ranking(
    left: Matrix, right: Matrix | AnyArray, candidates: BoolArray
) -> ProductRanking | DenseProductRanking:
    if isinstance(right, np.ndarray):
        return DenseProductRanking(left, right, candidates)
    return ProductRanking(left, right, candidates)
