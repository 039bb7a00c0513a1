from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from recbias.core.dataset import Split, TrainingData
from recbias.core.errors import OutOfRange
from recbias.models.neumf import NeuMF, _NeuMFTensors, score_block
from recbias.models.training import Dense
from support.models import recommending
from support.worlds.small_worlds import make_interactions

CPU = torch.device("cpu")
SMALL = NeuMF(embedding_size=8, epochs=30, batch_size=64, learning_rate=0.01, device="cpu")


def replace_parameters(tensors: _NeuMFTensors, values: list[Any]) -> _NeuMFTensors:
    """Return the model with other tensors, in the order of its parameters."""
    p, q, m, n, w1, b1, w2, b2, w3, b3, w4, b4 = values
    layers = [Dense(w1, b1), Dense(w2, b2), Dense(w3, b3)]
    return _NeuMFTensors(p, q, m, n, layers, Dense(w4, b4))


def test_gradients_equal_finite_differences(rng: np.random.Generator) -> None:
    tensors = _NeuMFTensors.initialize((3, 4), 1, CPU, rng)
    values = [
        torch.tensor(rng.normal(size=tensor.shape), requires_grad=True)
        for tensor in tensors.parameters()
    ]
    users, items = torch.tensor([0, 0, 2]), torch.tensor([1, 3, 1])
    labels = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)

    def compute_loss(*values: Any) -> Any:
        scores = replace_parameters(tensors, list(values)).score(users, items)
        return torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)

    assert torch.autograd.gradcheck(compute_loss, values)


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


def test_checkerboard_is_learned_with_dropout() -> None:
    data, expected = recommending.make_checkerboard(20)
    fitted = replace(SMALL, dropout=0.1, epochs=40).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 1, data)
    assert (lists.items[:, 0] == expected).mean() > 0.8


def test_dropout_does_not_apply_to_recommendation() -> None:
    data, _ = recommending.make_checkerboard(12)
    fitted = replace(SMALL, dropout=0.5, epochs=1).fit(data, np.random.default_rng(0))
    scores, repeated = (score_block(fitted.state(), np.arange(12)) for _ in range(2))
    np.testing.assert_array_equal(scores, repeated)


def test_dropout_is_reproducible() -> None:
    data, _ = recommending.make_checkerboard(12)
    dropout = replace(SMALL, dropout=0.5, epochs=2)
    hidden, repeated, full = (
        model.fit(data, np.random.default_rng(1)).state()["item_hidden"]
        for model in (dropout, dropout, replace(SMALL, epochs=2))
    )
    np.testing.assert_array_equal(hidden, repeated)
    assert not np.array_equal(hidden, full)


def test_fit_is_reproducible_and_depends_on_the_seed() -> None:
    data, _ = recommending.make_checkerboard(12)
    state, repeated, different = (
        replace(SMALL, epochs=2).fit(data, np.random.default_rng(seed)).state()
        for seed in (1, 1, 2)
    )
    for name, array in state.items():
        np.testing.assert_array_equal(array, repeated[name])
    assert not np.array_equal(state["item_factors"], different["item_factors"])


def test_divergence_is_an_error_that_names_the_learning_rate() -> None:
    data, _ = recommending.make_checkerboard(12)
    with pytest.raises(OutOfRange, match="NeuMF diverged in epoch 1 of 30: the loss is") as error:
        replace(SMALL, learning_rate=1e30).fit(data, np.random.default_rng(0))
    assert error.value.where == "learning_rate"


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize(
    "data",
    [
        TrainingData(make_interactions([(0, 0), (1, 0)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (0, 2)])),
        TrainingData(make_interactions([(0, 0), (0, 1), (1, 1)])),
        TrainingData(make_interactions([(0, 0), (1, 1), (2, 2)])),
        TrainingData(make_interactions([], n_users=2, n_items=3)),
    ],
    ids=["one item", "one user", "user of all items", "one item per user", "no interactions"],
)
def test_smallest_datasets_are_learned(data: TrainingData) -> None:
    fitted = replace(SMALL, epochs=2).fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 5, data)
    assert lists.items.shape == (data.train.n_users, 5)
    n_unseen = data.candidates.sum() - data.train.user_counts()
    n_expected = np.where(data.train.user_counts() > 0, n_unseen, 0)
    assert lists.filled.sum(1).tolist() == np.minimum(n_expected, 5).tolist()


@pytest.mark.slow
def test_quality_on_movielens(movielens: Split) -> None:
    # two of the seven default epochs and fewer negatives; the default reaches 0.27
    data = movielens.training_data()
    fitted = NeuMF(epochs=2, negatives=2, device="cpu").fit(data, np.random.default_rng(0))
    lists = fitted.recommend(recommending.query_all_users(data), 10, data)
    assert recommending.compute_mean_ndcg(lists, movielens) > 0.18
