from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from recbias.core.dataset import Matrix
from recbias.kernels.neighbours import Kind, Similarity, find_nearest
from recbias.models import gpu, knn
from recbias.models.gpu import find_nearest_on_device
from recbias.models.knn import ItemKNN, UserKNN
from support.models.recommending import make_random_data, query_all_users

CPU = torch.device("cpu")
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


@pytest.mark.parametrize("model", [ItemKNN(), UserKNN(), ItemKNN(weights="rating")])
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
