"""The memory of lists by sparse products, by the sizes of their factors."""

from __future__ import annotations

from recbias.core.machine.expected import Sizes
from recbias.models.ranking.product_lists import DENSE_LIMIT, MAX_DENSE_ROWS
from recbias.numerics.sparse.blocks import n_workers
from recbias.numerics.sparse.product_ranking import DENSE_TILE, count_bytes

DENSE_WIDTH = 28
"""Columns per entry of a row below which the right factor becomes dense, about: it is 1.75 times
the cost of a sparse operation, as the rows with more entries are used more often."""


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
