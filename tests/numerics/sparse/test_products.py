from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from recbias.kernels import topk
from recbias.kernels.topk import compute_gram, create_product_blocks, sparse_is_faster


@pytest.mark.parametrize("cost", [0, 10**9], ids=["sparse way", "dense way"])
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (1, 5)])
def test_dense_and_sparse_products_are_equal(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, shape: tuple[int, int], cost: int
) -> None:
    monkeypatch.setattr(topk, "_SPARSE_COST", cost)
    dense = rng.random(shape, dtype=np.float32) * (rng.random(shape) < 0.2)
    matrix = csr_array(dense)
    np.testing.assert_allclose(compute_gram(matrix), dense @ dense.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        create_product_blocks(matrix)(0, 1), dense[:1] @ dense.T, rtol=1e-5, atol=1e-6
    )


def test_products_of_binary_rows_are_exact(rng: np.random.Generator) -> None:
    ones = csr_array((rng.random((500, 60)) < 0.3).astype(np.float32))
    assert np.array_equal(compute_gram(ones), (ones.toarray() @ ones.toarray().T).round())


def test_memory_limit_does_not_change_results(rng: np.random.Generator) -> None:
    matrix = random_array((90, 30), density=0.2, format="csr", dtype=np.float32, rng=rng)
    assert np.array_equal(compute_gram(matrix), compute_gram(matrix, memory_limit=1))


@pytest.mark.parametrize(("entries_a_row", "faster"), [(1, True), (100, False)])
def test_sparse_factors_use_the_sparse_product(entries_a_row: int, faster: bool) -> None:
    # each of 100 entries on the left meets a row of 1 or of all 100 columns
    left = csr_array(np.ones((1, 100), dtype=np.float32))
    right = np.zeros((100, 100), dtype=np.float32)
    right[:, :entries_a_row] = 1
    assert sparse_is_faster(left, csr_array(right)) is faster
