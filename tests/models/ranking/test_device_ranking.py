from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.gpu import Ranking, count_available_bytes
from support.models.recommending import make_random_data, query_all_users

CPU = torch.device("cpu")


def score_products(state: Mapping[str, Any], users: Any) -> Any:
    return state["p"][users] @ state["q"]


def sample_integer_state(rng: np.random.Generator, data: TrainingData) -> dict[str, Any]:
    """Sample integers, so that products are exact and ties are frequent on every device."""
    shapes = {"p": (data.train.n_users, 3), "q": (3, data.train.n_items)}
    return {name: rng.integers(-2, 3, shape).astype(np.float32) for name, shape in shapes.items()}


class Recorder:
    """Records the block sizes and runs out of memory for blocks of more than ``max_users``."""

    def __init__(self, max_users: int = 10**9) -> None:
        self.max_users, self.sizes = max_users, [0]

    def __call__(self, state: Mapping[str, Any], users: Any) -> Any:
        self.sizes.append(len(users))
        if len(users) > self.max_users:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return score_products(state, users)


@pytest.mark.parametrize("memory_limit", [None, 1, 40_000])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_tensors_and_arrays_give_the_same_lists(
    rng: np.random.Generator, k: int, memory_limit: int | None
) -> None:
    data = make_random_data(rng)
    ranking = Ranking(
        score_products, sample_integer_state(rng, data), "cpu", memory_limit=memory_limit
    )
    expected = ranking.lists(query_all_users(data), k, data)
    device_lists = ranking.rank_on_device(CPU, query_all_users(data), k, data)
    assert np.array_equal(device_lists.items, expected.items)
    np.testing.assert_array_equal(device_lists.scores, expected.scores)


@pytest.mark.parametrize("max_users", [1, 2, 5, 29])
def test_block_is_halved_when_memory_runs_out(rng: np.random.Generator, max_users: int) -> None:
    data = make_random_data(rng)
    state, recorder = sample_integer_state(rng, data), Recorder(max_users)
    device_lists = Ranking(recorder, state, "cpu").rank_on_device(
        CPU, query_all_users(data), 7, data
    )
    expected = Ranking(score_products, state, "cpu").lists(query_all_users(data), 7, data)
    assert np.array_equal(device_lists.items, expected.items)
    failed = [size for size in recorder.sizes if size > max_users]
    assert len(failed) <= 6  # the size is halved each time, and no size fails twice


def test_out_of_memory_error_has_a_remedy(rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    ranking = Ranking(Recorder(max_users=0), sample_integer_state(rng, data), "cpu")
    with pytest.raises(OutOfRange, match="too little memory to rank even one user") as caught:
        ranking.rank_on_device(CPU, query_all_users(data), 7, data)
    assert caught.value.where == "device"
    assert caught.value.remedy == "set device: cpu, or lower embedding_size"


@pytest.mark.gpu
def test_gpu_and_cpu_give_the_same_lists(rng: np.random.Generator) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    data = make_random_data(rng)
    state = sample_integer_state(rng, data)
    expected = Ranking(score_products, state, "cpu").lists(query_all_users(data), 7, data)
    device_lists = Ranking(score_products, state, "cuda").lists(query_all_users(data), 7, data)
    assert np.array_equal(device_lists.items, expected.items)
    np.testing.assert_array_equal(device_lists.scores, expected.scores)
    assert 0 < count_available_bytes(torch.device("cuda")) <= torch.cuda.mem_get_info()[1]
