from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset.split import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.neural.neumf import NeuMF, NeuMFTensors
from recbias.models.neural.pair_network import pair_scores
from recbias.models.training.layers import Dense
from support import recommending
from support.worlds import make_interactions

CPU = torch.device("cpu")
SMALL = NeuMF(embedding_size=8, epochs=30, batch_size=64, learning_rate=0.01, device="cpu")


def of_doubles(tensors: NeuMFTensors, values: list[Any]) -> NeuMFTensors:
    """The same model of other tensors, in the order of its parameters."""
    p, q, m, n, w1, b1, w2, b2, w3, b3, w4, b4 = values
    layers = [Dense(w1, b1), Dense(w2, b2), Dense(w3, b3)]
    return NeuMFTensors(p, q, m, n, layers, Dense(w4, b4))


def test_gradients_are_finite_differences(rng: np.random.Generator) -> None:
    tensors = NeuMFTensors.drawn((3, 4), 1, CPU, rng)
    values = [
        torch.tensor(rng.normal(size=each.shape), requires_grad=True)
        for each in tensors.parameters()
    ]
    users, items = torch.tensor([0, 0, 2]), torch.tensor([1, 3, 1])
    labels = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)

    def loss(*values: Any) -> Any:
        scores = of_doubles(tensors, list(values)).scored(users, items)
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)

    assert torch.autograd.gradcheck(loss, values)


def test_a_score_by_hand() -> None:
    # f = 1: p q = 2 · 3, weighed 0.5; the network on (1, -2): four times 1 - 2 · 0.25 = 0.5, with
    # relu; two sums 4 · 0.5 - 1 = 1; one sum 1 + 1 = 2, weighed 10; b = 0.125
    def full(shape: tuple[int, ...], value: float) -> Any:
        return torch.full(shape, float(value))

    first = Dense(torch.tensor([[1.0] * 4, [0.25] * 4]), torch.zeros(4))
    layers = [first, Dense(full((4, 2), 1), full((2,), -1)), Dense(full((2, 1), 1), full((1,), 0))]
    tensors = NeuMFTensors(
        full((1, 1), 2),
        full((1, 1), 3),
        full((1, 1), 1),
        full((1, 1), -2),
        layers,
        Dense(torch.tensor([[0.5], [10.0]]), torch.tensor([0.125])),
    )
    one = torch.tensor([0])
    assert tensors.scored(one, one).tolist() == [3 + 20 + 0.125]
    assert pair_scores(tensors.state(), np.array([0])).tolist() == [[23.125]]
    assert tensors.state()["user_factors"].tolist() == [[1.0]]


def test_blocks_of_scores_are_the_scores_of_pairs(rng: np.random.Generator) -> None:
    tensors = NeuMFTensors.drawn((5, 7), 4, CPU, rng)
    for each in tensors.parameters():
        each.data.normal_(generator=torch.Generator().manual_seed(each.numel()))
    users, items = (torch.from_numpy(each.ravel()) for each in np.mgrid[:5, :7])
    pairs = tensors.scored(users, items).detach().numpy().reshape(5, 7)
    np.testing.assert_allclose(pair_scores(tensors.state(), np.arange(5)), pairs, rtol=1e-4)


def test_it_learns_the_checkerboard_with_dropout_too() -> None:
    data, wanted = recommending.make_checkerboard(20)
    found = replace(SMALL, dropout=0.1, epochs=40).fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == wanted).mean() > 0.8


def test_nothing_is_dropped_once_it_is_trained() -> None:
    data, _ = recommending.make_checkerboard(12)
    found = replace(SMALL, dropout=0.5, epochs=1).fit(data, np.random.default_rng(0))
    first, again = (pair_scores(found.state(), np.arange(12)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_dropout_is_of_the_experiments_own_chance() -> None:
    data, _ = recommending.make_checkerboard(12)
    with_noise = replace(SMALL, dropout=0.5, epochs=2)
    first, again, without = (
        each.fit(data, np.random.default_rng(1)).state()["item_hidden"]
        for each in (with_noise, with_noise, replace(SMALL, epochs=2))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, without)


def test_one_seed_one_result_another_another() -> None:
    data, _ = recommending.make_checkerboard(12)
    first, again, other = (
        replace(SMALL, epochs=2).fit(data, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    for name, each in first.state().items():
        np.testing.assert_array_equal(each, again.state()[name])
    assert not np.array_equal(first.state()["item_factors"], other.state()["item_factors"])


def test_a_learning_rate_that_diverges_is_named() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="NeuMF diverged in epoch 1 of 30: the loss is") as error:
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))
    assert error.value.where == "learning_rate"


@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (0, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (1, 1)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one user", "a user of every item", "an item a user", "no row"],
)
def test_the_smallest_worlds_are_learned(data: TrainingData) -> None:
    found = replace(SMALL, epochs=2).fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    left = data.candidates.sum() - data.train.user_counts()
    asked = np.where(data.train.user_counts() > 0, left, 0)
    assert lists.filled.sum(1).tolist() == np.minimum(asked, 5).tolist()


def test_quality_on_movielens(movielens: Split) -> None:
    # two of the seven epochs of the default, which comes to 0.27, with fewer negatives
    data = movielens.training_data()
    found = NeuMF(epochs=2, negatives=2, device="cpu").fit(data, np.random.default_rng(0))
    lists = found.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.18
