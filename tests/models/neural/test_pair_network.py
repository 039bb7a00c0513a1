from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.models.neumf import score_block


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
