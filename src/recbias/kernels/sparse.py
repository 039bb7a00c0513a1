"""Compiled loops, blocks of rows in threads, and operations on sparse matrices.

``compile_loop`` compiles a loop by numba when it is first called. The matrices are CSR, with a
row for each list, history or query and a column for each item.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from recbias.core.context import track_progress
from recbias.core.dataset import AnyArray, BoolArray, Codes, Matrix

_CACHE_LINE = 64


def prefetch_row(table: AnyArray, row: Any) -> None:
    """Start to load a row of a C-contiguous table, or an entry of a vector, into the cache.

    Outside compiled loops this does nothing.
    """


@cache
def register_prefetch() -> None:
    """Make ``prefetch_row`` known to numba; it becomes a few instructions of the processor."""
    from numba.extending import overload

    start_loading = _create_intrinsic()

    @overload(prefetch_row)
    def _compile(table: Any, row: Any) -> Callable[..., None]:  # noqa: ARG001
        def load(table: Any, row: Any) -> None:
            for byte in range(0, table.strides[0], _CACHE_LINE):
                start_loading(table, row, byte)

        return load


def _create_intrinsic() -> Callable[..., None]:
    """Return a function that calls ``llvm.prefetch`` for a byte of a row."""
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.extending import intrinsic

    octet, number = ir.IntType(8), ir.IntType(32)
    for_writing, keep_in_all_caches, data = number(1), number(3), number(1)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        row = context.cast(builder, arguments[1], signature.args[1], types.intp)
        stride = builder.extract_value(table.strides, 0)
        offset = builder.add(builder.mul(row, stride), arguments[2])
        address = builder.gep(builder.bitcast(table.data, octet.as_pointer()), [offset])
        kind = ir.FunctionType(ir.VoidType(), [octet.as_pointer(), number, number, number])
        prefetch = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, kind, "llvm.prefetch.p0i8"
        )
        builder.call(prefetch, [address, for_writing, keep_in_all_caches, data])
        return context.get_dummy_value()

    @intrinsic
    def start_loading(_: Any, table: Any, row: Any, byte: Any) -> Any:
        return types.void(table, row, byte), generate

    return start_loading


_FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz"})
"""Allow any order of summation, as in a matrix product, but keep NaN and infinity."""


@cache
def compile_loop(
    loop: Callable[..., Any], *, exact: bool = False, parts: tuple[Callable[..., Any], ...] = ()
) -> Callable[..., Any]:
    """Compile a function of arrays, tuples and numbers to machine code.

    It is compiled at the first call for each combination of argument types and cached by numba,
    beside the source or in the user's cache folder. Without such a folder each process compiles
    again. The results are deterministic. With ``exact``, every operation is
    rounded as numpy rounds it; else sums may be taken in any order. The ``parts`` are functions
    that the loop calls, and are compiled in the same way; a change of theirs is not seen by the
    cache, unless the file of the loop changes too.
    """
    import numba
    from numba.extending import register_jitable

    register_prefetch()
    fast = False if exact else set(_FAST_MATH)
    for part in parts:
        register_jitable(fastmath=fast, error_model="numpy")(part)
    njit: Any = partial(numba.njit, fastmath=fast, error_model="numpy", nogil=True)
    try:
        return njit(cache=True)(loop)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder for the cache
        return njit()(loop)  # type: ignore[no-any-return]


T = TypeVar("T")

MEMORY_LIMIT = 128 * 2**20
"""Default limit of the bytes of all blocks that are processed in parallel."""


def block_size(bytes_per_row: int, *, memory_limit: int = MEMORY_LIMIT) -> int:
    """Return the number of rows of a block, at least 1, so that one block per core fits.

    >>> block_size(2**20, memory_limit=1)
    1
    """
    return max(1, memory_limit // (n_workers() * max(bytes_per_row, 1)))


def n_workers() -> int:
    """Return the number of blocks processed in parallel: the number of cores, at most 8."""
    return min(os.cpu_count() or 1, 8)


def map_blocks(
    work: Callable[[int, int], T], n_rows: int, size: int, *, label: str = ""
) -> list[T]:
    """Return ``work(start, stop)`` for each block of ``size`` rows, in order.

    Blocks run in threads, because array libraries release the interpreter lock. A block must not
    depend on the result of another one. Inside a block a matrix product uses one core: more would
    compete with the other blocks. With a ``label``, progress is reported under it.

    >>> map_blocks(lambda start, stop: list(range(start, stop)), 5, 2)
    [[0, 1], [2, 3], [4]]
    """
    blocks: list[T] = []
    for_each_block(work, n_rows, size, blocks.append, label=label)
    return blocks


def for_each_block(
    work: Callable[[int, int], T],
    n_rows: int,
    size: int,
    receive: Callable[[T], object],
    *,
    first: int = 0,
    label: str = "",
) -> None:
    """Call ``receive`` with the result of each block from row ``first`` on, in order.

    Results are received in this thread, while later blocks run.

    >>> for_each_block(lambda start, stop: (start, stop), 5, 2, print, first=1)
    (1, 3)
    (3, 5)
    """
    from threadpoolctl import threadpool_limits

    starts = range(first, n_rows, size)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_workers()) as pool:
        blocks = [pool.submit(work, start, min(start + size, n_rows)) for start in starts]
        for block in track_progress(blocks, label) if label else blocks:
            receive(block.result())


MAX_INT32 = 2**31 - 1

_MOST_SORTED = 2**16
"""Fewer codes are sorted faster than ``scipy.sparse`` is imported."""


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
    if codes.size <= _MOST_SORTED:
        return np.argsort(codes, kind="stable").astype(np.int32)
    from scipy.sparse import csr_array

    position = np.int32 if codes.size <= MAX_INT32 else np.int64
    arrays = (np.arange(codes.size, dtype=position), codes, np.array([0, codes.size]))
    columns: AnyArray = csr_array(arrays, shape=(1, max(n_codes, 1))).tocsc().data
    return columns


def build_rows(
    codes: AnyArray, included: BoolArray, n_columns: int, values: npt.ArrayLike = 1.0
) -> Matrix:
    """Return the included cells of rows of codes, CSR ``(n, n_columns)``.

    Args:
        codes: The column of each cell, ``int[n, k]``.
        included: Which cells the matrix holds, ``bool[n, k]``.
        n_columns: The number of columns.
        values: The entry of each of the k positions, or of all; it gives the type.

    >>> codes = np.array([[1, 0], [0, -1]])
    >>> build_rows(codes, codes >= 0, 2, [3.0, 5.0]).toarray().tolist()
    [[5.0, 3.0], [3.0, 0.0]]
    """
    from scipy.sparse import csr_array

    index = np.int32 if max(codes.size, n_columns) <= MAX_INT32 else np.int64
    starts = np.zeros(len(codes) + 1, dtype=index)
    np.cumsum(np.count_nonzero(included, axis=1), out=starts[1:])
    entries = np.broadcast_to(np.asarray(values), codes.shape)[included]
    columns = codes[included].astype(index, copy=False)
    return csr_array((entries, columns, starts), shape=(len(codes), n_columns))


def keep_columns(rows: Matrix, kept: BoolArray) -> Matrix:
    """Return the entries of a CSR matrix in some columns, as ones; itself if these are all.

    >>> from scipy.sparse import csr_array
    >>> keep_columns(csr_array([[5.0, 7.0]]), np.array([False, True])).toarray().tolist()
    [[0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    stays = kept[rows.indices]
    if stays.all() and (rows.data == 1).all():
        return rows
    ends = np.zeros(stays.size + 1, dtype=rows.indptr.dtype)
    np.cumsum(stays, out=ends[1:])
    ones = np.ones(int(ends[-1]))
    return csr_array((ones, rows.indices[stays], ends[rows.indptr]), shape=rows.shape)
