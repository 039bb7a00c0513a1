"""The rows of a sparse matrix on a device, and their products in dense blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from recbias.core.arrays import Matrix
from recbias.core.errors import TooLittleMemory
from recbias.models.ranking.device_products import gather_rows
from recbias.models.ranking.tensors import Tensor, is_out_of_memory

Block = TypeVar("Block")

LOW_BITS = np.uint32(0x1FFF)
"""The bits of a ``float32`` that TF32 leaves out."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """A CSR matrix ``float32 (n, m)`` on a device.

    Args:
        starts: The position in ``columns`` where each row starts, ``int64[n + 1]``.
        columns: The columns of the rows in turn, ``int64``.
        values: Their values, ``float32``.
        n_columns: m.
        is_short: Whether TF32 holds the values without rounding, as it does 0 and 1.
    """

    starts: Tensor
    columns: Tensor
    values: Tensor
    n_columns: int
    is_short: bool

    @classmethod
    def copy(cls, matrix: Matrix, device: Any) -> DeviceRows:
        """Copy a matrix to a ``torch.device``."""
        import torch

        values = np.ascontiguousarray(matrix.data, dtype=np.float32)
        starts, columns = (
            torch.tensor(codes, dtype=torch.int64, device=device)
            for codes in (matrix.indptr, matrix.indices)
        )
        is_short = not (values.view(np.uint32) & LOW_BITS).any()
        tensor = torch.tensor(values, device=device)
        return cls(starts, columns, tensor, int(matrix.shape[1]), is_short)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def to_dense(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop`` as a new dense tensor, ``(stop - start, m)``."""
        import torch

        rows = torch.arange(start, stop, device=self.starts.device)
        owners, positions = gather_rows(self.starts, rows)
        dense = self.values.new_zeros((stop - start, self.n_columns))
        dense[owners, self.columns[positions]] = self.values[positions]
        return dense

    def multiply(self, start: int, stop: int) -> Tensor:
        """Return the products of rows ``start`` to ``stop`` with all rows, ``(stop - start, n)``.

        The other rows are dense in blocks of as many. Short values are multiplied as TF32, whose
        products and sums have the precision of ``float32``.
        """
        targets, size = self.to_dense(start, stop), stop - start
        products = self.values.new_empty((stop - start, len(self)))
        with multiply_short(enabled=self.is_short and self.values.device.type == "cuda"):
            for first in range(0, len(self), size):
                last = min(first + size, len(self))
                products[:, first:last] = targets @ self.to_dense(first, last).T
        return products


def map_device_blocks(
    work: Callable[[int, int], Block], n_rows: int, size: int
) -> Iterator[Block]:
    """Yield ``work(start, stop)`` for blocks of rows, with half as many when memory runs out."""
    start = 0
    while start < n_rows:
        stop = min(start + size, n_rows)
        try:
            block = work(start, stop)
        except (RuntimeError, MemoryError) as error:
            if stop - start == 1 or not is_out_of_memory(error):
                raise
            size = (stop - start) // 2
            continue
        yield block
        start = stop


@contextmanager
def report_full_device(name: str) -> Iterator[None]:
    """Raise TooLittleMemory, with a remedy, if memory runs out in the block."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        problem = f"{name}: the device has too little memory"
        raise TooLittleMemory(problem, where="device", remedy="set device: cpu") from error


@contextmanager
def multiply_short(*, enabled: bool) -> Iterator[None]:
    """Multiply ``float32`` matrices as TF32 on CUDA in the block, if enabled."""
    import torch

    before = torch.get_float32_matmul_precision()
    if enabled:
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        if enabled:
            torch.set_float32_matmul_precision(before)
