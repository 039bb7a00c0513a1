from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array, random_array

from recbias.core.dataset import Matrix
from recbias.core.errors import OutOfRange, TooLittleMemory
from recbias.kernels.neighbours import Kind, Similarity, find_nearest
from recbias.models import gpu, knn, linear
from recbias.models import gpu as device_products
from recbias.models.gpu import (
    find_nearest_on_device,
    find_right_singular_vectors,
    map_device_blocks,
    regress_items,
    report_full_device,
)
from recbias.models.knn import ItemKNN, UserKNN
from recbias.models.linear import EASE
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
    assert weights.dtype == np.float32
    assert weights is not None
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


KINDS: tuple[Kind, ...] = ("cosine", "asymmetric", "jaccard", "dice")


def sample_rows(rng: np.random.Generator, *, binary: bool, n: int = 60, m: int = 25) -> Matrix:
    """Sample rows of which many have the same similarity; some are empty."""
    dense = (rng.random((n, m)) < rng.random(n)[:, None] / 2).astype(np.float32)
    dense[[0, 7]] = 0
    if not binary:
        dense *= rng.integers(1, 11, dense.shape) / 2
    return csr_array(dense.astype(np.float32))


@pytest.mark.parametrize("memory_limit", [None, 1, 10_000])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_those_of_arrays(
    rng: np.random.Generator, kind: Kind, binary: bool, memory_limit: int | None
) -> None:
    matrix = sample_rows(rng, binary=binary, n=30)
    settings: dict[str, Any] = {"alpha": 0.3, "shrink": 2.0}
    for neighbors in (1, 5, 100) if memory_limit is None else (5,):
        expected = find_nearest(matrix, neighbors, kind=kind, **settings)
        similarity = Similarity(kind, **settings)
        found = find_nearest_on_device(
            matrix, neighbors, similarity, CPU, memory_limit=memory_limit
        )
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.data, expected.data)


@pytest.mark.parametrize("model", [ItemKNN(), UserKNN(), ItemKNN(similarity="jaccard")])
@pytest.mark.parametrize("dense_limit", [0, 2**28])
def test_models_give_the_same_lists_by_tensors(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, model: Any, dense_limit: int
) -> None:
    data = make_random_data(rng, 80, 50)
    queries = query_all_users(data)
    expected = model.fit(data, rng).recommend(queries, 10, data)
    for module in (knn, gpu):
        monkeypatch.setattr(module, "find_accelerator", lambda _: CPU)
    monkeypatch.setattr(gpu, "DENSE_LIMIT", dense_limit)
    fitted = model.fit(data, rng)
    lists = fitted.recommend(queries, 10, data)
    np.testing.assert_allclose(lists.scores, expected.scores, rtol=1e-5)
    assert (lists.items == expected.items).mean() > 0.98, "other items only at a tie"
    restored = model.restore(fitted.state()).recommend(queries, 10, data)
    np.testing.assert_array_equal(restored.items, lists.items)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("binary", [True, False])
def test_a_gpu_finds_the_neighbours_of_the_cpu(
    rng: np.random.Generator, kind: Kind, binary: bool
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    matrix = sample_rows(rng, binary=binary, n=500, m=300)
    expected = find_nearest(matrix, 20, kind=kind)
    found = find_nearest_on_device(matrix, 20, Similarity(kind), torch.device("cuda"))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)


def test_a_full_device_is_one_error_with_a_remedy() -> None:
    def fail(start: int, stop: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    message = "neighbours: the device has too little memory"
    with pytest.raises(TooLittleMemory, match=message) as caught, report_full_device("neighbours"):
        next(map_device_blocks(fail, 8, 8))
    assert (caught.value.where, caught.value.remedy) == ("device", "set device: cpu")
