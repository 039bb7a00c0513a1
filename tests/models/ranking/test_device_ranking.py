from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset.split import TrainingData
from recbias.core.errors import BrokenContract, OutOfRange
from recbias.core.stage_context import collect_warnings
from recbias.models.ranking.device_ranking import Ranking, memory_of
from recbias.models.ranking.score_blocks import RANKING_LIMIT
from support.asked import asked
from support.recommending import everybody, random_world
from support.worlds import rows

CPU = torch.device("cpu")


def products(held: Mapping[str, Any], users: Any) -> Any:
    return held["p"][users] @ held["q"]


def whole_numbers(rng: np.random.Generator, data: TrainingData) -> dict[str, Any]:
    """A state whose products are exact, so that they tie often and alike on every device."""
    shapes = {"p": (data.train.n_users, 3), "q": (3, data.train.n_items)}
    return {name: rng.integers(-2, 3, shape).astype(np.float32) for name, shape in shapes.items()}


class Recorded:
    """Scores of products that note how many users were asked at once, and may be too many."""

    def __init__(self, most: int = 10**9) -> None:
        self.most, self.asked = most, [0]

    def __call__(self, held: Mapping[str, Any], users: Any) -> Any:
        self.asked.append(len(users))
        if len(users) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return products(held, users)


def test_the_state_is_what_scores_are_made_of() -> None:
    data = TrainingData(rows([(0, 0), (1, 1), (1, 2)], n_users=2, n_items=3))
    state = {"p": np.array([[1], [2]], dtype=np.float32), "q": np.array([[3, 4, 5]], "f4")}
    ranking = Ranking(products, state, "cpu")
    for lists in (
        ranking.lists(asked(["a", "b"]), 2, data),
        ranking.lists_on(CPU, asked(["a", "b"]), 2, data),
    ):
        assert lists.items.tolist() == [[2, 1], [0, -1]]
        np.testing.assert_array_equal(lists.scores, np.array([[5, 4], [6, np.nan]], "f4"))


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_a_cpu_ranks_arrays(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    data = TrainingData(rows([(0, 0), (1, 1)]))
    seen: list[Any] = []

    def score_block(held: Mapping[str, Any], users: Any) -> Any:
        seen.extend([users, *held.values()])
        return np.zeros((len(users), 2), dtype=np.float32)

    Ranking(score_block, {"p": np.zeros(1)}, device).lists(asked(["a", "b"]), 1, data)
    assert seen
    assert all(isinstance(each, np.ndarray) for each in seen)


@pytest.mark.parametrize("memory_limit", [None, 1, 40_000])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_tensors_are_ranked_as_arrays_are(
    rng: np.random.Generator, k: int, memory_limit: int | None
) -> None:
    data = random_world(rng)
    ranking = Ranking(products, whole_numbers(rng, data), "cpu", memory_limit=memory_limit)
    expected = ranking.lists(everybody(data), k, data)
    found = ranking.lists_on(CPU, everybody(data), k, data)
    assert np.array_equal(found.items, expected.items)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_state_and_codes_are_tensors_of_the_device_and_nothing_learns() -> None:
    data = TrainingData(rows([(0, 0), (1, 1)]))

    def score_block(held: Mapping[str, Any], users: Any) -> Any:
        assert all(isinstance(each, torch.Tensor) for each in (users, held["p"]))
        assert not torch.is_grad_enabled()
        return held["p"][users]

    fixed = np.eye(2, dtype=np.float32)
    fixed.flags.writeable = False
    lists = Ranking(score_block, {"p": fixed}, "cpu").lists_on(CPU, asked(["a", "b"]), 1, data)
    assert lists.items.tolist() == [[1], [0]]
    assert np.array_equal(fixed, np.eye(2))


def test_who_has_no_history_gets_an_empty_list(rng: np.random.Generator) -> None:
    data = TrainingData(rows([(0, 0), (0, 1), (1, 1)], n_users=3, n_items=3))
    ranking = Ranking(products, whole_numbers(rng, data), "cpu")
    with collect_warnings() as notes:
        lists = ranking.lists_on(CPU, asked(["c", "b", "?"], [2, 1, -1]), 2, data)
    # item 2 has nobody, item 1 is user b's own
    assert lists.items.tolist() == [[-1, -1], [0, -1], [-1, -1]]
    assert notes == ["2 of 3 queries have no training history: empty lists"]


def test_nobody_is_asked(rng: np.random.Generator) -> None:
    data = random_world(rng)
    lists = Ranking(products, whole_numbers(rng, data), "cpu").lists_on(CPU, asked([]), 5, data)
    assert lists.items.shape == lists.scores.shape == (0, 5)


def test_blocks_hold_no_more_users_than_memory_allows(rng: np.random.Generator) -> None:
    data = random_world(rng)
    recorded = Recorded()
    # 45 items of 32 bytes: 1,440 a user, so that 10,000 hold 6 users
    ranking = Ranking(recorded, whole_numbers(rng, data), "cpu", 32, 10_000)
    ranking.lists_on(CPU, everybody(data), 3, data)
    assert max(recorded.asked) == 6
    recorded.asked.clear()
    ranking.lists(everybody(data), 3, data)
    assert 0 < max(recorded.asked) <= 6


@pytest.mark.parametrize("most", [1, 2, 5, 29])
def test_too_large_a_block_is_tried_again_as_a_smaller_one(
    rng: np.random.Generator, most: int
) -> None:
    data = random_world(rng)
    state, recorded = whole_numbers(rng, data), Recorded(most)
    found = Ranking(recorded, state, "cpu").lists_on(CPU, everybody(data), 7, data)
    expected = Ranking(products, state, "cpu").lists(everybody(data), 7, data)
    assert np.array_equal(found.items, expected.items)
    tried = [each for each in recorded.asked if each > most]
    assert len(tried) <= 6  # each is half of the last, and none is tried twice


def test_too_little_memory_for_one_user_says_what_would_do(rng: np.random.Generator) -> None:
    data = random_world(rng)
    ranking = Ranking(Recorded(most=0), whole_numbers(rng, data), "cpu")
    with pytest.raises(OutOfRange, match="too little memory to rank even one user") as error:
        ranking.lists_on(CPU, everybody(data), 7, data)
    assert error.value.where == "device"
    assert error.value.remedy == "set device: cpu, or lower embedding_size"


def test_what_is_no_lack_of_memory_is_not_taken_for_one(rng: np.random.Generator) -> None:
    data = random_world(rng)

    def broken(held: Mapping[str, Any], users: Any) -> Any:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        Ranking(broken, whole_numbers(rng, data), "cpu").lists_on(CPU, everybody(data), 7, data)


def test_scores_of_another_shape_break_the_contract(rng: np.random.Generator) -> None:
    data = random_world(rng)
    ranking = Ranking(lambda held, users: held["q"], whole_numbers(rng, data), "cpu")
    with pytest.raises(BrokenContract, match=r"scores have shape \(3, 45\) where"):
        ranking.lists_on(CPU, everybody(data), 7, data)


def test_a_cpu_has_the_memory_of_all_blocks() -> None:
    assert memory_of(CPU) == RANKING_LIMIT


@pytest.mark.gpu
def test_a_gpu_ranks_as_a_cpu_does(rng: np.random.Generator) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    data = random_world(rng)
    state = whole_numbers(rng, data)
    expected = Ranking(products, state, "cpu").lists(everybody(data), 7, data)
    found = Ranking(products, state, "cuda").lists(everybody(data), 7, data)
    assert np.array_equal(found.items, expected.items)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert 0 < memory_of(torch.device("cuda")) <= torch.cuda.mem_get_info()[1]
