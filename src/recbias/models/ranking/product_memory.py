"""The memory of lists by sparse products, by the sizes of their factors."""

from __future__ import annotations

from typing import Literal

from recbias.models.ranking.score_blocks import DENSE_LIMIT
from recbias.numerics.sparse.product_ranking import count_bytes

DENSE_WIDTH = 28
"""Columns per entry of a row below which the right factor becomes dense, about: it is 1.75 times
the cost of a sparse operation, as the rows with more entries are used more often."""


def plan_product(
    n_rows: float, n_columns: float, n_entries: float
) -> tuple[float, Literal["blocks", "tiles"]]:
    """Return the bytes of the copy of a right factor that is ranked, and how it is ranked.

    >>> plan_product(1000, 1000, 100_000), plan_product(1000, 5000, 100_000)
    ((4000000, 'blocks'), (1200000, 'tiles'))
    """
    n_bytes = 4 * n_rows * n_columns
    if n_bytes <= DENSE_LIMIT and n_columns * n_rows < DENSE_WIDTH * n_entries:
        return n_bytes, "blocks"
    return count_bytes(n_rows, n_columns, n_entries), "tiles"
