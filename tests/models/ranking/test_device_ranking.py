from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.context import collect_warnings
from recbias.core.dataset import TrainingData
from recbias.core.errors import BrokenContract, OutOfRange
from recbias.models.gpu import Ranking, count_available_bytes
from recbias.models.ranking import RANKING_LIMIT
from support.models.recommending import make_random_data, query_all_users
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

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


def test_lists_are_computed_from_the_state() -> None:
    data = TrainingData(make_interactions([(0, 0), (1, 1), (1, 2)], n_users=2, n_items=3))
    state = {"p": np.array([[1], [2]], dtype=np.float32), "q": np.array([[3, 4, 5]], "f4")}
    ranking = Ranking(score_products, state, "cpu")
    for lists in (
        ranking.lists(make_queries(["a", "b"]), 2, data),
        ranking.rank_on_device(CPU, make_queries(["a", "b"]), 2, data),
    ):
        assert lists.items.tolist() == [[2, 1], [0, -1]]
        np.testing.assert_array_equal(lists.scores, np.array([[5, 4], [6, np.nan]], "f4"))


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_cpu_passes_arrays_to_the_score_function(
    monkeypatch: pytest.MonkeyPatch, device: Any
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    data = TrainingData(make_interactions([(0, 0), (1, 1)]))
    arguments: list[Any] = []

    def score_block(state: Mapping[str, Any], users: Any) -> Any:
        arguments.extend([users, *state.values()])
        return np.zeros((len(users), 2), dtype=np.float32)

    Ranking(score_block, {"p": np.zeros(1)}, device).lists(make_queries(["a", "b"]), 1, data)
    assert arguments
    assert all(isinstance(argument, np.ndarray) for argument in arguments)


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


def test_device_ranking_passes_tensors_without_gradients() -> None:
    data = TrainingData(make_interactions([(0, 0), (1, 1)]))

    def score_block(state: Mapping[str, Any], users: Any) -> Any:
        assert all(isinstance(argument, torch.Tensor) for argument in (users, state["p"]))
        assert not torch.is_grad_enabled()
        return state["p"][users]

    read_only = np.eye(2, dtype=np.float32)
    read_only.flags.writeable = False
    lists = Ranking(score_block, {"p": read_only}, "cpu").rank_on_device(
        CPU, make_queries(["a", "b"]), 1, data
    )
    assert lists.items.tolist() == [[1], [0]]
    assert np.array_equal(read_only, np.eye(2))


def test_users_without_history_have_empty_lists(rng: np.random.Generator) -> None:
    data = TrainingData(make_interactions([(0, 0), (0, 1), (1, 1)], n_users=3, n_items=3))
    ranking = Ranking(score_products, sample_integer_state(rng, data), "cpu")
    with collect_warnings() as warnings:
        lists = ranking.rank_on_device(CPU, make_queries(["c", "b", "?"], [2, 1, -1]), 2, data)
    # item 2 has no training row, item 1 is in the history of user b
    assert lists.items.tolist() == [[-1, -1], [0, -1], [-1, -1]]
    assert warnings == ["2 of 3 queries have no training history: empty lists"]


def test_no_queries_give_no_lists(rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    lists = Ranking(score_products, sample_integer_state(rng, data), "cpu").rank_on_device(
        CPU, make_queries([]), 5, data
    )
    assert lists.items.shape == lists.scores.shape == (0, 5)


def test_block_size_is_limited_by_memory(rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    recorder = Recorder()
    # 45 items of 32 bytes: 1,440 per user, so that 10,000 bytes hold 6 users
    ranking = Ranking(recorder, sample_integer_state(rng, data), "cpu", 32, 10_000)
    ranking.rank_on_device(CPU, query_all_users(data), 3, data)
    assert max(recorder.sizes) == 6
    recorder.sizes.clear()
    ranking.lists(query_all_users(data), 3, data)
    assert 0 < max(recorder.sizes) <= 6


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


def test_other_runtime_errors_are_not_reported_as_out_of_memory(rng: np.random.Generator) -> None:
    data = make_random_data(rng)

    def raise_shape_error(state: Mapping[str, Any], users: Any) -> Any:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        Ranking(raise_shape_error, sample_integer_state(rng, data), "cpu").rank_on_device(
            CPU, query_all_users(data), 7, data
        )


def test_wrong_score_shape_raises_broken_contract(rng: np.random.Generator) -> None:
    data = make_random_data(rng)
    ranking = Ranking(lambda state, users: state["q"], sample_integer_state(rng, data), "cpu")
    with pytest.raises(BrokenContract, match=r"scores have shape \(3, 45\), expected"):
        ranking.rank_on_device(CPU, query_all_users(data), 7, data)


def test_cpu_memory_limit_is_the_ranking_limit() -> None:
    assert count_available_bytes(CPU) == RANKING_LIMIT


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
