"""Random sets of rows, so that the bootstrap of many rows takes no longer than that of some."""

from __future__ import annotations

from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray

LARGE = 20_000
"""The largest number of rows that are sampled one by one."""

N_SETS = 1_000
"""The number of sets that more rows are joined in."""

DENSE_CELLS = 2**25
"""The largest number of sums of sets that are an array."""


def join_rows(
    rows: Any, rng: np.random.Generator, *, large: int | None = None, n_sets: int | None = None
) -> Any:
    """Return the sums of random sets of rows if there are more than ``large``, else the rows.

    Sampling the sums of sets of one size has the variance of sampling the rows, in expectation,
    and a cost that does not grow with their number. With 1,000 sets the standard error is
    estimated with a relative error of 2%, as it is with 1,000 samples. Sizes differ by one row
    at most.

    The sums are an array, of a CSR matrix as long as they fit ``DENSE_CELLS``: sets of many rows
    are full. Rows that are not joined are returned as they are.

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
    n, n_sets = rows.shape[0], N_SETS if n_sets is None else n_sets
    if n <= (LARGE if large is None else large):
        return rows
    sets = np.empty(n, dtype=np.int64)
    sets[rng.permutation(n)] = np.arange(n) % n_sets
    return add_in_sets(rows, sets, n_sets)


def add_in_sets(rows: Any, sets: AnyArray, n_sets: int, *, are_full: bool = True) -> Any:
    """Return the sums of the rows of each set, ``(n_sets, m)``; a set of -1 is left out.

    Those of a CSR matrix are an array if they are ``are_full`` and not too many, else CSR.

    >>> add_in_sets(np.array([[1.0], [2.0], [4.0]]), np.array([0, 1, 0]), 2).tolist()
    [[5.0], [2.0]]
    """
    from scipy.sparse import csr_array, issparse

    if are_full and issparse(rows) and n_sets * rows.shape[1] <= DENSE_CELLS:
        return _add_cells(rows, sets, n_sets)
    included = np.flatnonzero(sets >= 0)
    ones = np.ones(included.size, dtype=rows.dtype)
    return csr_array((ones, (sets[included], included)), shape=(n_sets, rows.shape[0])) @ rows


def _add_cells(rows: Any, sets: AnyArray, n_sets: int) -> AnyArray:
    """Return the same of a CSR matrix as an array, by one count of the cells of each set."""
    m = rows.shape[1]
    order = np.argsort(sets.astype(np.min_scalar_type(-n_sets)), kind="stable")
    ends = np.searchsorted(sets[order], np.arange(n_sets + 1))
    ordered = rows[order]
    is_one = bool((rows.data == 1).all())  # their sums are counts, whatever the type of the ones
    sums = np.empty((n_sets, m), dtype=np.int32 if is_one else rows.dtype)
    for row, start, stop in zip(sums, *ordered.indptr[[ends[:-1], ends[1:]]], strict=True):
        weights = None if is_one else ordered.data[start:stop]
        row[:] = np.bincount(ordered.indices[start:stop], weights, minlength=m)
    return sums
