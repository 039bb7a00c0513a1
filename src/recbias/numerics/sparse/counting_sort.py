"""The order of codes by counting, and of the values of small groups by comparing."""

from __future__ import annotations

import numpy as np

from recbias.core.arrays import AnyArray, Codes

MAX_INT32 = 2**31 - 1


def argsort_codes(codes: Codes, n_codes: int) -> AnyArray:
    """Return the positions of codes in ascending order; equal codes keep their order.

    The result is that of ``numpy.argsort(codes, kind="stable")``, as ``int32[n]`` where this holds
    all positions, and the time is O(n + n_codes): a row of codes is transposed as a sparse matrix.

    Args:
        codes: ``int32[n]``, from 0 to below ``n_codes``.
        n_codes: The number of different codes.

    >>> argsort_codes(np.array([2, 0, 2, 1], dtype=np.int32), 3).tolist()
    [1, 3, 0, 2]
    """
    from scipy.sparse import csr_array

    position = np.int32 if codes.size <= MAX_INT32 else np.int64
    arrays = (np.arange(codes.size, dtype=position), codes, np.array([0, codes.size]))
    columns: AnyArray = csr_array(arrays, shape=(1, max(n_codes, 1))).tocsc().data
    return columns


def sort_within_groups(values: AnyArray, keys: AnyArray, starts: AnyArray) -> None:
    """Sort the values of each group by their keys, in place, and the keys with them.

    The groups follow each other, so that each is sorted within the cache of a processor. Values
    of equal keys are in no order.

    Args:
        values: ``[n]``.
        keys: Integers of at least 0, ``[n]``.
        starts: Where each group starts, and n, ``[n_groups + 1]``.

    >>> values, keys = np.array([7, 8, 9, 5]), np.array([3, 1, 2, 0], dtype=np.int32)
    >>> sort_within_groups(values, keys, np.array([0, 3, 4]))
    >>> values.tolist(), keys.tolist()
    ([8, 9, 7, 5], [1, 2, 3, 0])
    """
    from scipy.sparse import csr_array

    shape = (starts.size - 1, int(keys.max(initial=0)) + 1)
    rows = csr_array((values, keys, starts.astype(keys.dtype)), shape=shape)
    rows.sort_indices()
    values[:], keys[:] = rows.data, rows.indices
