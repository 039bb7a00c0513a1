"""Ideal lists of a synthetic world: the items that a user is most likely to pick."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray, Codes, FloatArray, Matrix
from recbias.core.dataset.odds import Odds

CELLS = 2**22
"""The number of (user, item) cells that are ranked at once."""


def rank_ideal_lists(
    odds: Odds, users: Codes, histories: Matrix, candidates: BoolArray, k: int
) -> Codes:
    """Return the k candidates of each user with the highest odds that are not in the history.

    Ties are in the order of the item codes. A list is shorter if there are fewer candidates, and
    empty for a query that is not a user.

    Args:
        odds: The log-odds of the picks.
        users: The user code of each query, -1 where it is not a user, ``int[q]``.
        histories: The items that each query's user has had, CSR ``(q, n_items)``.
        candidates: Which items may be recommended, ``bool[n_items]``.
        k: The length of the lists.

    Returns:
        Item codes ``int32[q, k]``, best first; -1 pads the end of a row.

    >>> from scipy.sparse import csr_array
    >>> odds = Odds(np.array([[0.0, 2.0, 1.0]]), np.array([0, 0]))
    >>> users, histories = np.array([0, 1], dtype=np.int32), csr_array([[0, 0, 0], [0, 1, 0]])
    >>> rank_ideal_lists(odds, users, histories, np.ones(3, dtype=bool), 2).tolist()
    [[1, 2], [2, 0]]
    """
    n_items = odds.by_type.shape[1]
    size = max(1, CELLS // max(n_items, 1))
    lists = np.full((users.size, k), -1, dtype=np.int32)
    for start in range(0, users.size, size):
        block = slice(start, start + size)
        log_odds = odds.by_type[odds.types[users[block]]]
        log_odds[:, ~candidates] = -np.inf
        log_odds[histories[block].toarray() > 0] = -np.inf
        log_odds[users[block] < 0] = -np.inf
        order = np.argsort(-log_odds, axis=1, kind="stable")[:, :k]
        is_free = np.take_along_axis(log_odds, order, axis=1) > -np.inf
        lists[block, : order.shape[1]] = np.where(is_free, order, -1)
    return lists


def weigh_lists(odds: Odds, users: Codes, items: Codes) -> FloatArray:
    """Return the odds of each listed item, relative to the most likely item of its user.

        w_ui = exp(v_ui - max_j v_uj),    v: the log-odds

    Args:
        odds: The log-odds of the picks.
        users: The user code of each query, -1 where it is not a user, ``int[q]``.
        items: Item codes ``int[q, k]``; -1 and items outside the catalogue have the odds 0.

    Returns:
        ``float64[q, k]`` from 0 to 1; NaN for a query that is not a user.

    >>> odds = Odds(np.array([[0.0, np.log(4.0), np.log(2.0)]]), np.array([0]))
    >>> weigh_lists(odds, np.array([0]), np.array([[1, 2, 0, -1]])).tolist()
    [[1.0, 0.5, 0.25, 0.0]]
    """
    types: AnyArray = odds.types[users]
    inside = (items >= 0) & (items < odds.by_type.shape[1])
    log_odds = odds.by_type[types[:, None], np.where(inside, items, 0)]
    weights = np.exp(log_odds - odds.by_type.max(axis=1)[types][:, None])
    return np.where((users < 0)[:, None], np.nan, np.where(inside, weights, 0.0))
