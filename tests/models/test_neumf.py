from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import Split
from recbias.models.pair_networks import NeuMF, _NeuMFTensors, score_block
from recbias.models.training import Dense
from support.models import recommending

CPU = torch.device("cpu")


def replace_parameters(tensors: _NeuMFTensors, values: list[Any]) -> _NeuMFTensors:
    """Return the model with other tensors, in the order of its parameters."""
    p, q, m, n, w1, b1, w2, b2, w3, b3, w4, b4 = values
    layers = [Dense(w1, b1), Dense(w2, b2), Dense(w3, b3)]
    return _NeuMFTensors(p, q, m, n, layers, Dense(w4, b4))


def test_score_by_hand() -> None:
    # f = 1: p q = 2 · 3 with weight 0.5. The network on (1, -2): four units 1 - 2 · 0.25 = 0.5,
    # two units 4 · 0.5 - 1 = 1, one unit 1 + 1 = 2 with weight 10; b = 0.125
    def fill(shape: tuple[int, ...], value: float) -> Any:
        return torch.full(shape, float(value))

    first = Dense(torch.tensor([[1.0] * 4, [0.25] * 4]), torch.zeros(4))
    layers = [first, Dense(fill((4, 2), 1), fill((2,), -1)), Dense(fill((2, 1), 1), fill((1,), 0))]
    tensors = _NeuMFTensors(
        fill((1, 1), 2),
        fill((1, 1), 3),
        fill((1, 1), 1),
        fill((1, 1), -2),
        layers,
        Dense(torch.tensor([[0.5], [10.0]]), torch.tensor([0.125])),
    )
    code = torch.tensor([0])
    assert tensors.score(code, code).tolist() == [3 + 20 + 0.125]
    assert score_block(tensors.state(), np.array([0])).tolist() == [[23.125]]
    assert tensors.state()["user_factors"].tolist() == [[1.0]]


def test_exported_scores_equal_scores_of_pairs(rng: np.random.Generator) -> None:
    tensors = _NeuMFTensors.initialize((5, 7), 4, CPU, rng)
    for tensor in tensors.parameters():
        tensor.data.normal_(generator=torch.Generator().manual_seed(tensor.numel()))
    users, items = (torch.from_numpy(codes.ravel()) for codes in np.mgrid[:5, :7])
    pairs = tensors.score(users, items).detach().numpy().reshape(5, 7)
    np.testing.assert_allclose(score_block(tensors.state(), np.arange(5)), pairs, rtol=1e-4)


@pytest.mark.slow
def test_quality_on_movielens(movielens: Split) -> None:
    # two of the seven default epochs and fewer negatives; the default reaches 0.27
    data = movielens.training_data()
    fitted = NeuMF(epochs=2, negatives=2, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.18


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
