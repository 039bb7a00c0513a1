from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import TrainingData
from recbias.models.neumf import FittedPairNetwork, apply_layers, score_block
from recbias.models.training import Dense
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions


def make_state(rng: np.random.Generator) -> dict[str, Any]:
    shapes = {
        "user_factors": (3, 2),
        "item_factors": (4, 2),
        "item_bias": (4,),
        "user_hidden": (3, 5),
        "item_hidden": (4, 5),
        "deep.0.weight": (5, 3),
        "deep.0.bias": (3,),
        "deep.1.weight": (3, 1),
        "deep.1.bias": (1,),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


HAND = {
    "user_factors": np.array([[1, 2]], "f4"),
    "item_factors": np.array([[3, 1], [0, 1]], "f4"),
    "item_bias": np.array([0, 0.5], "f4"),
    "user_hidden": np.array([[1, -1]], "f4"),
    "item_hidden": np.array([[1, 0], [-4, 3]], "f4"),
    "deep.0.weight": np.array([[2], [-1]], "f4"),
    "deep.0.bias": np.array([1], "f4"),
}
# item 0: 3 + 2 + 0, relu(2, -1) = (2, 0), 2 · 2 + 1 = 5; item 1: 2 + 0.5, relu(-3, 2) = (0, 2),
# -2 + 1 = -1


def test_scores_by_hand() -> None:
    users = np.array([0], dtype=np.int32)
    np.testing.assert_allclose(score_block(HAND, users), [[10, 1.5]])
    # σ(5) = 0.993307, σ(-1) = 0.268941
    squashed = score_block(HAND, users, sigmoid=True)
    np.testing.assert_allclose(squashed, [[5.993307, 2.768941]], rtol=1e-6)


@pytest.mark.parametrize("sigmoid", [False, True])
def test_scores_of_tensors_equal_scores_of_arrays(
    rng: np.random.Generator, *, sigmoid: bool
) -> None:
    arrays, users = make_state(rng), np.array([2, 0, 2])
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    scores = score_block(tensors, torch.from_numpy(users), sigmoid=sigmoid)
    expected = score_block(arrays, users, sigmoid=sigmoid)
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-5)
    assert expected.dtype == np.float32


def test_sigmoid_of_extreme_scores_does_not_overflow() -> None:
    state = HAND | {"item_bias": np.zeros(2, "f4"), "item_factors": np.zeros((2, 2), "f4")}
    state["deep.0.bias"] = np.array([1e5], "f4")
    np.testing.assert_allclose(score_block(state, np.array([0]), sigmoid=True), [[1, 1]])
    state["deep.0.bias"] = np.array([-1e5], "f4")
    np.testing.assert_allclose(
        score_block(state, np.array([0]), sigmoid=True), [[0, 0]], atol=1e-9
    )


def test_network_of_one_layer_has_no_relu() -> None:
    state = {name: array for name, array in HAND.items() if not name.startswith("deep")}
    state |= {"user_hidden": np.array([[-1]], "f4"), "item_hidden": np.array([[-2], [5]], "f4")}
    np.testing.assert_allclose(score_block(state, np.array([0])), [[5 - 3, 2.5 + 4]])


def test_lists_rank_the_scores(rng: np.random.Generator) -> None:
    data = TrainingData(make_interactions([(0, 0), (1, 1), (1, 2), (2, 3)]))
    fitted = FittedPairNetwork(make_state(rng))
    lists = fitted.recommend(make_queries(["a", "b", "c"]), 4, data)
    scores = score_block(fitted.state(), np.arange(3))
    scores[data.train.users, data.train.items] = -np.inf
    assert lists.items[:, 0].tolist() == scores.argmax(1).tolist()
    assert (lists.items[:, 3] == -1).all()
    vectors = fitted.embeddings()
    assert vectors.users is fitted.arrays["user_factors"]
    assert vectors.items is fitted.arrays["item_factors"]


def test_layers_apply_relu_to_their_input() -> None:
    layers = [
        Dense(torch.tensor([[1.0, -1.0]]), torch.tensor([1.0, 0.0])),
        Dense(torch.tensor([[-2.0], [3.0]]), torch.tensor([1.0])),
    ]
    # 4 -> (5, -4) -> (5, 0) -> -10 + 1; -1 -> 0 -> (1, 0) -> -2 + 1
    assert apply_layers(layers, torch.tensor([[4.0], [-1.0]])).tolist() == [[-9.0], [-1.0]]
    assert apply_layers([], torch.tensor([[-1.0]])).tolist() == [[-1.0]]


def test_dropout_applies_to_the_input_of_each_layer() -> None:
    layers = [Dense(torch.eye(50), torch.zeros(50)) for _ in range(3)]
    noise = torch.Generator().manual_seed(1)
    outputs = apply_layers(layers, torch.ones(200, 50), 0.5, noise)
    assert (outputs == 0).float().mean().item() == pytest.approx(1 - 0.5**3, abs=0.02)
    assert outputs.max().item() == 8
