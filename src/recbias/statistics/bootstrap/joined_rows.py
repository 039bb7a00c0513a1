"""Random sets of rows, so that the bootstrap of many rows takes no longer than that of some."""

from __future__ import annotations

from typing import Any

import numpy as np

LARGE = 20_000
"""The largest number of rows that are sampled one by one."""

N_SETS = 1_000
"""The number of sets that more rows are joined in."""


def join_rows(
    rows: Any, rng: np.random.Generator, *, large: int | None = None, n_sets: int | None = None
) -> Any:
    """Return the sums of random sets of rows if there are more than ``large``, else the rows.

    Sampling the sums of sets of one size has the variance of sampling the rows, in expectation,
    and a cost that does not grow with their number. With 1,000 sets the standard error is
    estimated with a relative error of 2%, as it is with 1,000 samples. Sizes differ by one row
    at most.

    Args:
        rows: A CSR matrix or an array, ``(q, m)``.
        rng: Gives the sets, which depend on the number of rows only.
        large: By default ``LARGE``.
        n_sets: By default ``N_SETS``.

    >>> join_rows(np.ones((5, 1)), np.random.default_rng(0), large=3, n_sets=2).tolist()
    [[3.0], [2.0]]

    Source:
        The method of random groups: Wolter, "Introduction to variance estimation", 2007, chapter
        2.
    """
    from scipy.sparse import csr_array

    n, n_sets = rows.shape[0], N_SETS if n_sets is None else n_sets
    if n <= (LARGE if large is None else large):
        return rows
    sets = np.empty(n, dtype=np.int64)
    sets[rng.permutation(n)] = np.arange(n) % n_sets
    ones = np.ones(n, dtype=rows.dtype)
    return csr_array((ones, (sets, np.arange(n))), shape=(n_sets, n)) @ rows
