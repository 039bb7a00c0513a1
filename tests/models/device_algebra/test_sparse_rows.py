from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from recbias.core.errors import TooLittleMemory
from recbias.models.gpu import DeviceRows, map_device_blocks, multiply_short, report_full_device

CPU = torch.device("cpu")


def test_dense_rows_and_products_are_those_of_the_matrix(rng: np.random.Generator) -> None:
    dense = (rng.random((11, 7)) * (rng.random((11, 7)) < 0.4)).astype(np.float32)
    dense[3] = 0
    rows = DeviceRows.copy(csr_array(dense), CPU)
    np.testing.assert_array_equal(rows.to_dense(2, 6).numpy(), dense[2:6])
    np.testing.assert_allclose(rows.multiply(2, 6).numpy(), dense[2:6] @ dense.T, rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "is_short"), [(1.0, True), (4.5, True), (2049.0, False), (0.1, False)]
)
def test_short_values_have_eleven_significant_bits(value: float, is_short: bool) -> None:
    matrix = csr_array(np.array([[1.0, value]], dtype=np.float32))
    assert DeviceRows.copy(matrix, CPU).is_short == is_short


def test_the_precision_of_products_is_restored() -> None:
    before = torch.get_float32_matmul_precision()
    with multiply_short(enabled=True):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_blocks_are_halved_when_memory_runs_out(most: int) -> None:
    tried = []

    def work(start: int, stop: int) -> list[int]:
        tried.append(stop - start)
        if stop - start > most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return list(range(start, stop))

    rows = [row for block in map_device_blocks(work, 17, 8) for row in block]
    assert rows == list(range(17))
    assert sum(size > most for size in tried) <= 3  # no size fails twice


def test_a_full_device_is_one_error_with_a_remedy() -> None:
    def fail(start: int, stop: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    message = "neighbours: the device has too little memory"
    with pytest.raises(TooLittleMemory, match=message) as caught, report_full_device("neighbours"):
        next(map_device_blocks(fail, 8, 8))
    assert (caught.value.where, caught.value.remedy) == ("device", "set device: cpu")


def test_other_errors_are_not_taken_for_a_full_device() -> None:
    def fail(start: int, stop: int) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="cannot be multiplied"), report_full_device("x"):
        next(map_device_blocks(fail, 8, 8))
