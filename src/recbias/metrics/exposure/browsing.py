"""Browsing models: how much exposure each rank of a list gives to its item.

    rbp    e(r) = gamma^(r - 1)       a user goes on to the next rank with probability gamma
    dcg    e(r) = 1 / log2(r + 1)

Ranks after the end of a list give no exposure.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Lt

from recbias.core.arrays import BoolArray, FloatArray, Matrix
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.item_popularity import build_history_matrix
from recbias.numerics.ranking_gain import rank_discounts
from recbias.numerics.sparse.rows import build_rows, keep_columns

BrowsingModel: TypeAlias = Literal["rbp", "dcg"]
"""The browsing models."""

Patience: TypeAlias = Annotated[float, Ge(0.0), Lt(1.0)]
"""The probability of going on to the next rank. With 1 every rank would have the same exposure and
the sum over the ranks would not converge."""


def weigh_ranks(browsing: BrowsingModel, gamma: float, n: int) -> FloatArray:
    """Return the exposure of the ranks 1 to ``n``, ``float64[n]``.

    >>> weigh_ranks("rbp", 0.5, 3).tolist(), weigh_ranks("dcg", 0.5, 3).round(4).tolist()
    ([1.0, 0.5, 0.25], [1.0, 0.6309, 0.5])
    """
    if browsing == "dcg":
        return rank_discounts(n)
    return np.power(gamma, np.arange(n, dtype=np.float64))


def build_exposure_matrix(evidence: Evidence, weights: FloatArray) -> Matrix:
    """Return the exposure of the items of each list, CSR ``(q, n_items + number outside)``.

    Args:
        evidence: The lists.
        weights: The exposure of each rank that counts.
    """
    lists = evidence.ranked
    items, filled = lists.items[:, : weights.size], lists.filled[:, : weights.size]
    n_columns = len(evidence.item_ids) + lists.outside.size
    return build_rows(items, filled, n_columns, weights[: items.shape[1]])


def mark_candidates(evidence: Evidence) -> BoolArray:
    """Return which items may be recommended, ``bool[n_items]``; all if it is not known."""
    if evidence.candidates is None:
        return np.ones(len(evidence.item_ids), dtype=bool)
    return evidence.candidates


def select_relevant(evidence: Evidence) -> Matrix:
    """Return the candidates among the test items of each query, CSR ``(q, n_items)`` of ones."""
    evidence.need("test")
    return keep_columns(evidence.relevant, mark_candidates(evidence))


def select_histories(evidence: Evidence) -> Matrix:
    """Return the candidates in the history of each query, CSR ``(q, n_items)`` of ones."""
    from scipy.sparse import csr_array

    if evidence.train is None:
        return csr_array((len(evidence.queries), len(evidence.item_ids)))
    return keep_columns(build_history_matrix(evidence), mark_candidates(evidence))


def sum_rows(matrix: Matrix) -> FloatArray:
    """Return the sum of each row of a sparse matrix, ``float64[n]``."""
    return np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
