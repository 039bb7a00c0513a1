"""The memory of sparse products, and of lists by them, by the sizes of their factors."""

from __future__ import annotations

import numpy as np

from recbias.core.machine.expected import Sizes
from recbias.models.ranking.product_lists import DENSE_LIMIT, MAX_DENSE_ROWS
from recbias.numerics.sparse.blocks import n_workers
from recbias.numerics.sparse.product_ranking import DENSE_TILE, count_bytes

DENSE_WIDTH = 28
"""Columns per entry of a row below which the right factor becomes dense, about: it is 1.75 times
the cost of a sparse operation, as the rows with more entries are used more often."""

ROW_SKEW, COLUMN_SKEW = 5.0, 2.5
"""Mean of the squared number of interactions of items, and of users, as a multiple of the square
of the mean, about."""


def count_pairs(n_rows: float, n_columns: float, n_entries: float) -> float:
    """Return about how many pairs of rows share a column: the entries of a product of a matrix.

        n² E[1 - exp(-m z)],    m = COLUMN_SKEW n_entries² / (n_columns n²)

    n is the number of rows and m the mean number of columns that two of them share. z, with the
    mean 1, is the product of the frequencies of two rows, whose logarithms are normal.

    >>> round(count_pairs(2810, 5949, 454_860))  # the items of MovieLens-1M: 6,014,340 pairs
    5757346
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    variance = 2 * np.log(ROW_SKEW)
    frequencies = np.exp(np.sqrt(variance) * nodes - variance / 2)
    mean = COLUMN_SKEW * n_entries**2 / max(n_columns * n_rows**2, 1)
    return n_rows**2 * float(-np.expm1(-mean * frequencies) @ weights / weights.sum())


def plan_product(n_rows: float, n_columns: float, n_entries: float) -> float:
    """Return the bytes of the copy of a right factor that is ranked in tiles.

    >>> plan_product(1000, 5000, 100_000)
    1200000
    """
    n_bytes = 4 * n_rows * n_columns
    if n_bytes <= DENSE_LIMIT and n_columns * n_rows < DENSE_WIDTH * n_entries:
        return n_bytes + plan_dense_tiles(n_rows)
    return count_bytes(n_rows, n_columns, n_entries)


def plan_dense_tiles(n_rows: float) -> float:
    """Return the bytes of the tiles of a dense right factor that are copied, one a thread."""
    return 4.0 * DENSE_TILE * n_rows * n_workers()


def plan_histories(sizes: Sizes) -> float:
    """Return the bytes of the histories of the users who are ranked at once by dense tiles."""
    n_users = max(sizes["users"], 1)
    return 8.0 * sizes["training"] / n_users * min(n_users, MAX_DENSE_ROWS * n_workers())
