from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, random_array

from recbias.core.errors import OutOfRange
from recbias.models import gpu as device_products
from recbias.models import linear
from recbias.models.gpu import find_right_singular_vectors, regress_items
from recbias.models.linear import EASE
from support.models.recommending import make_random_data

CPU = torch.device("cpu")


@pytest.fixture
def on_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the models compute with tensors as on a GPU, here on the CPU."""
    for module in (linear, linear, device_products):
        monkeypatch.setattr(module, "find_accelerator", lambda _, double=False: CPU)


@pytest.mark.parametrize("memory_limit", [None, 1, 5_000])
@pytest.mark.parametrize("max_norm", [0.0, 1e7])
def test_item_weights_are_those_of_the_inverse(
    rng: np.random.Generator, max_norm: float, memory_limit: int | None
) -> None:
    dense = (rng.random((30, 90)) < 0.3).astype(np.float32)
    weights = regress_items(
        csr_array(dense), 0.5, CPU, max_norm=max_norm, memory_limit=memory_limit
    )
    inverse = np.linalg.inv(dense.astype(np.float64) @ dense.T + 0.5 * np.eye(30))
    assert weights is not None
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, np.eye(30) - inverse / inverse.diagonal(), atol=2e-6)
    assert (weights.diagonal() == 0).all()


@pytest.mark.usefixtures("on_tensors")
def test_a_matrix_without_an_inverse_is_the_same_error(rng: np.random.Generator) -> None:
    data = make_random_data(rng, 20, 30)  # fewer users than items
    with pytest.raises(OutOfRange, match="cannot invert the item-item matrix with reg 1e-300"):
        EASE(reg=1e-300).fit(data, rng)


@pytest.mark.parametrize("shape", [(300, 120), (120, 300), (60, 60)])
@pytest.mark.parametrize("k", [1, 6, 40])
def test_singular_vectors_are_those_of_the_full_decomposition(
    rng: np.random.Generator, shape: tuple[int, int], k: int
) -> None:
    matrix: Any = csr_array(random_array(shape, density=0.1, rng=rng, format="csr"))
    values, vectors = find_right_singular_vectors(matrix, k, CPU)
    _, expected_values, expected = np.linalg.svd(matrix.toarray())
    np.testing.assert_allclose(values, expected_values[:k], rtol=1e-8)
    cosines = np.abs((vectors * expected[:k]).sum(axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-8)


@pytest.mark.gpu
def test_a_gpu_gives_the_decompositions_of_the_cpu(rng: np.random.Generator) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    gpu = torch.device("cuda")
    matrix: Any = csr_array(random_array((400, 300), density=0.1, rng=rng, format="csr"))
    (values, vectors), expected = (
        find_right_singular_vectors(matrix, 12, device) for device in (gpu, CPU)
    )
    np.testing.assert_allclose(values, expected[0], rtol=1e-8)
    cosines = np.abs((vectors * expected[1]).sum(axis=1))
    np.testing.assert_allclose(cosines, 1, atol=1e-8)
    weights, expected_weights = (
        regress_items(matrix, 5.0, device, max_norm=1e7) for device in (gpu, CPU)
    )
    assert weights is not None
    assert expected_weights is not None
    np.testing.assert_allclose(weights, expected_weights, atol=1e-5)
