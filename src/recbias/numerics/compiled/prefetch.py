"""Prefetching: rows of a large table are brought into the cache before a compiled loop needs them.

A loop over random rows otherwise waits for the memory at each of them. Results do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from recbias.core.arrays import AnyArray

CACHE_LINE = 64


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
            for byte in range(0, table.strides[0], CACHE_LINE):
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
