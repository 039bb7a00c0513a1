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
from recbias.models.linear import EASE, PureSVD
from support.models.recommending import make_random_data, query_all_users

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


@pytest.mark.parametrize("reg", [0.5, 50.0])
@pytest.mark.usefixtures("on_tensors")
def test_ease_gives_the_same_lists_by_tensors(rng: np.random.Generator, reg: float) -> None:
    data = make_random_data(rng, 200, 60)
    expected = EASE(reg=reg, device="cpu")
    matrix = data.train.binary.T.tocsr()
    weights = linear._regress_items(matrix, reg)
    fitted = expected.fit(data, rng)
    assert weights is not None
    np.testing.assert_allclose(fitted.state()["weights"], weights, atol=1e-5)
    lists = fitted.recommend(query_all_users(data), 10, data)
    scores = np.sort(np.where(matrix.T.toarray() > 0, -np.inf, matrix.T @ weights))[:, ::-1]
    is_listed = lists.items >= 0
    np.testing.assert_allclose(lists.scores[is_listed], scores[:, :10][is_listed], atol=1e-4)


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


@pytest.mark.parametrize("rank", [3, 5])
def test_a_matrix_of_lower_rank_has_singular_values_of_zero(
    rng: np.random.Generator, rank: int
) -> None:
    dense = rng.random((80, rank)) @ rng.random((rank, 50))
    values, vectors = find_right_singular_vectors(csr_array(dense), 8, CPU)
    assert (values[rank:] < 1e-6 * values[0]).all()
    reconstructed = dense @ vectors[:rank].T @ vectors[:rank]
    np.testing.assert_allclose(reconstructed, dense, atol=1e-7)


@pytest.mark.usefixtures("on_tensors")
@pytest.mark.parametrize("shape", [(150, 60), (50, 120)])
def test_pure_svd_gives_the_same_factors_by_tensors(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int]
) -> None:
    data = make_random_data(rng, *shape)
    expected = PureSVD(factors=7).fit(data, rng)  # the matrix is small: by arrays
    monkeypatch.setattr(linear, "MAX_DENSE_SVD", 0)
    fitted = PureSVD(factors=7).fit(data, rng)
    np.testing.assert_allclose(fitted.item_factors, expected.item_factors, atol=1e-6)
    np.testing.assert_allclose(fitted.user_factors, expected.user_factors, atol=1e-5)


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
