"""Recommendation to users by the texts of their own training reviews."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import Codes, FloatArray
from recbias.core.dataset.dataset import Reviews
from recbias.core.dataset.split import TrainingData
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import warn
from recbias.models.ranking.score_blocks import find_history_cells
from recbias.models.text.text_ranking import (
    MAX_BLOCK_SCORES,
    Classifier,
    ItemClasses,
    require_reviews,
)
from recbias.numerics.sparse.topk import top_k


def recommend_by_reviews(
    classes: ItemClasses,
    classify: Classifier,
    queries: Queries,
    k: int,
    data: TrainingData,
) -> RankedLists:
    """Return the ``k`` items of the highest mean log-probability for the users' reviews.

        score(u, i) = (1 / |R_u|) Σ_{r in R_u} ln p(i | r)

    ``R_u`` are the training reviews of user u. Training items of the user are excluded. Queries
    without a training review have empty lists, and a warning reports their number. Users are
    processed in blocks of at most ``MAX_BLOCK_SCORES`` scores, and each review is classified once.

    Args:
        classes: The items that are classes.
        classify: Computes the log-probabilities of texts.
        queries: The users.
        k: List length.
        data: The training data, with reviews.
    """
    reviews = require_reviews(data)
    users, positions = np.unique(queries.users, return_inverse=True)
    rows = np.flatnonzero(np.isin(users, reviews.users))
    items = np.full((users.size, k), -1, dtype=np.int32)
    scores = np.full((users.size, k), np.nan, dtype=np.float32)
    size = max(1, MAX_BLOCK_SCORES // len(classes))
    for start in range(0, rows.size, size):
        block = rows[start : start + size]
        means = _average_by_user(classify, reviews, users[block], len(classes))
        history_rows, history_items = find_history_cells(data.train.binary, users[block])
        means[history_rows, classes.encode(history_items)] = -np.inf
        columns, scores[block] = top_k(means, k)
        items[block] = classes.decode(columns)
    n_empty = int((~np.isin(positions, rows)).sum())
    if n_empty:
        warn(f"{n_empty:,} of {len(queries):,} queries have no training review: empty lists")
    return RankedLists(items[positions], scores[positions])


def _average_by_user(
    classify: Classifier, reviews: Reviews, users: Codes, n_classes: int
) -> FloatArray:
    """Return the mean log-probabilities over the reviews of each user, ``float64 (b, c)``.

    ``users`` are ascending, and each has a review.
    """
    from scipy.sparse import csr_array

    selected = np.flatnonzero(np.isin(reviews.users, users))
    owners = np.searchsorted(users, reviews.users[selected])
    sums = np.zeros((users.size, n_classes))
    for rows, log_probabilities in classify(reviews.texts[selected]):
        present, owner_rows = np.unique(owners[rows], return_inverse=True)
        cells = (np.ones(rows.size), (owner_rows, np.arange(rows.size)))
        membership = csr_array(cells, shape=(present.size, rows.size))
        sums[present] += membership @ log_probabilities.astype(np.float64)
    return np.asarray(sums / np.bincount(owners)[:, None])
